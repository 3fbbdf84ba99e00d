"""The plan in docs/scaling.md, asked of Snakemake."""

import re
from collections import Counter

import yaml
from clone import ROOT, Clone, Plan, cpu_seconds

SHARDS = 8


def plan(clone: Clone) -> Plan:
    """Of config/text8.yaml with five seeds and eight shards; text8 itself is not needed."""
    config = yaml.safe_load((ROOT / "config/text8.yaml").read_text()) | {"seeds": [1, 2, 3, 4, 5]}
    (clone.path / "seeds.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return clone.plan(f"--set-scatter=evaluation={SHARDS}", config="seeds.yaml")


def documented() -> dict[str, int]:
    """Rule -> jobs, from the table."""
    page = (ROOT / "docs/scaling.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", page, re.MULTILINE)
    return {rule: int(jobs.replace(",", "")) for rule, jobs in rows}


def test_ten_models_times_five_seeds_are_planned_quickly_and_as_documented(clone: Clone):
    before = cpu_seconds()
    found = plan(clone)
    assert cpu_seconds() - before < 30
    assert len(found.jobs) >= 1000
    by_rule = Counter(job.split()[0] for job in found.jobs)
    assert documented() == {rule: by_rule[rule] for rule in documented()}
    assert {"pretrain_lm", "adversarial_train", "train_recurrent_gan", "approx_evaluate"} <= set(documented())
    page = " ".join((ROOT / "docs/scaling.md").read_text().split())
    assert f"about {round(len(found.jobs), -2):,} jobs" in page
    assert f"about {round(len(found.outputs), -2):,} files" in page
    trained = {
        job.split()[1] for job in found.jobs if job.startswith(("pretrain_lm", "adversarial", "train_rec"))
    }
    assert len(trained) == 50
