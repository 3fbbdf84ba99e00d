"""The workflow inside another one, and behind the stub that the workflow catalog looks for."""

from pathlib import Path

import pandas as pd
import pytest
from clone import Clone, Plan, succeed

OUTER = """
configfile: "outer.yaml"

module ganlm:
    snakefile: "{snakefile}"
    config: config["language_models"]

use rule * from ganlm as ganlm_*

rule outer:
    default_target: True
    input: rules.ganlm_all.input
    output: "lines.txt"
    shell: "wc -l {{input}} > {{output}}"
"""

CONFIG = """
unrelated: 1
language_models:
  name: inner
  corpus: {source: bundled, characters: 20000}
  models: {flat: {kind: uniform}, pairs: {kind: ngram, order: 2}}
  evaluation: {block: 50}
"""

RULES = {"outer", "ganlm_split_corpus", "ganlm_train_ngram", "ganlm_approx_evaluate", "ganlm_render_table1"}


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    path = tmp_path / "outer"
    path.mkdir()
    (path / "outer.yaml").write_text(CONFIG)
    return path


def test_another_workflow_plans_with_a_config_of_its_own(outer: Path, repository: Clone):
    (outer / "Snakefile").write_text(OUTER.format(snakefile=repository.path / "workflow/Snakefile"))
    plan = Plan.parse(succeed("snakemake", "--cores=1", "--dry-run", cwd=outer))
    assert {job.split()[0] for job in plan.jobs} >= RULES
    assert plan.models == {"flat", "pairs"}
    assert all(output == "lines.txt" or output.startswith("results/inner/") for output in plan.outputs)


def test_another_workflow_runs_it_in_its_own_folder(outer: Path, clone: Clone):
    (outer / "Snakefile").write_text(OUTER.format(snakefile=clone.path / "Snakefile"))
    succeed("snakemake", "--cores=1", cwd=outer)
    models = set(pd.read_csv(outer / "results/inner/tables/table1.csv")["Model"])
    assert models >= {"flat", "pairs"}
    assert not (clone.path / "results").exists()
    assert "Nothing to be done" in succeed("snakemake", "--cores=1", cwd=outer)


def test_the_stub_is_the_same_workflow(repository: Clone, finished: Clone):
    stub = ("--snakefile", "workflow/Snakefile")
    assert repository.plan(*stub) == repository.plan()
    assert finished.plan(*stub).jobs == set()
