"""Profiles say where stages run, never what they compute; what a stage needs reaches the queue."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from clone import ROOT, Clone, run

REPLACED = {"cores", "resources"}
CLUSTERS = ["slurm", "slurm-test", "generic", "kubernetes"]
GPU_STAGES = {"pretrain_lm", "pretrain_point", "adversarial_train", "train_recurrent_gan"}
CPU_STAGES = {"split_corpus", "train_ngram", "choose_n", "approx_evaluate", "measure_windows", "draw_samples"}
TARGET = "results/tiny/models/1-gram/model.json"
QSUB = """#!/bin/sh
echo "$@" >> {asked}
for script; do :; done
sh "$script" >&2
echo 1
"""


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text())


def rules() -> dict[str, str]:
    """Rule -> its directives and those of the rule it is made from; being local is not inherited."""
    text = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    body = r"((?:(?: {4}.*)?\n)+)"
    found = dict(re.findall(rf"^rule (\w+):\n{body}", text, re.MULTILINE))
    for origin, rule, own in re.findall(rf"^use rule (\w+) as (\w+) with:\n{body}", text, re.MULTILINE):
        found[rule] = own + found[origin].replace("    localrule: True\n", "")
    return found


def resources(text: str) -> dict[str, str]:
    """Rule -> what a dry run says that it asks for."""
    found = re.findall(r"^rule (\w+):\n((?:    .*\n)*)", text, re.MULTILINE)
    return {rule: re.search(r"^    resources: (.*)$", body, re.MULTILINE)[1] for rule, body in found}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_profile_repeats_what_it_needs_of_the_one_it_replaces(name):
    default = {key: value for key, value in profile("default").items() if key not in REPLACED}
    assert {key: profile(name).get(key) for key in default} == default
    assert not REPLACED & set(profile(name)), "would be limits of the whole cluster"


def test_a_rule_is_local_or_says_what_it_needs():
    """Downloads, tables and figures stay on the submit host."""
    bodies = rules()
    local = {rule for rule, body in bodies.items() if "    localrule: True\n" in body}
    assert {"download_text8", "tune", "gather_evaluation", "score_samples", "render_table1"} <= local
    assert {rule for rule in bodies if re.match("render_|write_|gather_", rule)} <= local
    for rule in set(bodies) - local:
        for need in (r"^    threads: \d+$", r"^        mem_mb=\d+,$", r'^        runtime="\d+[mhd]",$'):
            assert re.search(need, bodies[rule], re.MULTILINE), (rule, need)


def test_the_table_says_what_the_rules_say():
    section = (ROOT / "profiles/README.md").read_text().split("## What a stage needs")[1].split("## ")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| `.*$", section, re.M)]
    named = {rule: needs for cell, *needs, _ in rows for rule in re.findall(r"`(\w+)`", cell)}
    assert set(named) == GPU_STAGES | CPU_STAGES
    bodies = rules()
    for rule, needs in named.items():
        patterns = (r"threads: (\d+)", r"mem_mb=(\d+)", r'runtime="(\w+)"', r"gpu=(\d+)")
        declared = [re.search(rf"^ +{each}", bodies[rule], re.M) for each in patterns]
        assert needs == [each[1] if each else "" for each in declared], rule


def submitted(text: str) -> dict[str, str]:
    """What the stages that are submitted ask for: they alone have a time limit."""
    found = {rule: asked for rule, asked in resources(text).items() if " runtime=" in asked}
    assert set(found) == GPU_STAGES | CPU_STAGES
    assert {rule for rule, asked in found.items() if " gpu=1," in asked} == GPU_STAGES
    return found


@pytest.mark.parametrize("name", ["slurm", "slurm-test", "generic"])
def test_what_a_stage_needs_is_known_to_the_queue(name, repository: Clone):
    text = repository.run("--dry-run", f"--workflow-profile=profiles/{name}")
    assert f"Using workflow specific profile profiles/{name} " in text
    asked = submitted(text).values()
    assert all("lock_seconds=" in each for each in asked)
    assert all("--signal=TERM@" in each for each in asked) == name.startswith("slurm")


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("No GPUs", ["gpu=0,"]),
        ("GPUs by `--gres` alone", ["gpu=0,", "gres=gpu:1"]),
        ("GPUs in a queue of their own", ["gpu=1,", "slurm_partition=gpu", "gpu_model=a100"]),
        ("No accounting", []),
        ("A queue with a time limit", ["runtime=1440,"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lines_for_other_clusters_are_understood(heading, shown, clone: Clone):
    """Added to the Slurm profile, as its README says."""
    section = (ROOT / "profiles/README.md").read_text().split(f"**{heading}")[1]
    lines = yaml.safe_load(re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])
    (clone.path / "profiles/mine").mkdir()
    (clone.path / "profiles/mine/config.yaml").write_text(yaml.safe_dump(profile("slurm") | lines))
    (rule,) = lines.get("set-resources", {"pretrain_lm": {}})
    model = {"pretrain_lm": "lstm", "train_recurrent_gan": "recurrent-gan"}[rule]
    target = f"results/tiny/models/{model}/model.json"
    text = clone.run("--dry-run", "--workflow-profile=profiles/mine", target)
    assert [each for each in shown if each not in resources(text)[rule] + ","] == []


@pytest.mark.parametrize("name", ["slurm", "slurm-test"])
def test_the_job_of_a_dead_node_is_left_to_slurm(name, repository: Clone):
    """Otherwise the plugin submits a second one beside that which Slurm starts again."""
    assert profile(name)["slurm-requeue"] is True
    repository.run("--dry-run", f"--workflow-profile=profiles/{name}", TARGET)


def test_a_misspelt_profile_is_not_announced(repository: Clone):
    """Snakemake ignores it in silence: the README says which line to look for."""
    text = repository.run("--dry-run", "--workflow-profile=profiles/slrum", TARGET)
    assert "Using workflow specific profile" not in text


def test_the_generic_profile_asks_a_queue_for_what_stages_need(clone: Clone, tmp_path: Path):
    """A queue that notes what it was asked for, and runs the script at once."""
    queue = tmp_path / "qsub"
    queue.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nfor job; do :; done\nsh "$job" >&2\necho 1\n'
    )
    queue.chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"
    clone.run("--workflow-profile=profiles/generic", "--latency-wait=5", TARGET, PATH=path)
    assert (clone.path / TARGET).exists()
    asked = [re.sub(r" \S+\.sh$", "", line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [
        "-N ganlm-split_corpus -j oe -o .snakemake -l walltime=30:00 -l select=1:ncpus=1:mem=1000mb:ngpus=0",
        "-N ganlm-train_ngram -j oe -o .snakemake -l walltime=30:00 -l select=1:ncpus=1:mem=4000mb:ngpus=0",
    ]


@pytest.mark.slow
def test_the_kubernetes_profile_loads_its_plugins_and_plans(clone: Clone, tmp_path: Path):
    """In an environment of its own, on top of this one. No pod is started."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=300)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "base.pth").write_text(sysconfig.get_path("purelib"))
    python = environment / "bin/python"
    requirements = ROOT / "profiles/kubernetes/requirements.txt"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "-r", requirements]
    subprocess.run(pip, check=True, timeout=300)
    planned = run(
        *(python, "-m", "snakemake", "--dry-run", "--configfile=config/tiny.yaml"),
        *("--workflow-profile=profiles/kubernetes", f"--default-storage-prefix={clone.path}"),
        cwd=clone.path,
    )
    assert planned.returncode == 0, planned.stdout
    assert all("gpu_manufacturer=nvidia, scale=0" in asked for asked in submitted(planned.stdout).values())
