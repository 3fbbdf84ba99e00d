"""All stages through a real Slurm: what comes out is what a run without it writes."""

import filecmp

import pytest
from clone import Clone
from slurm import GPU_NODE, Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

TINY = "config/tiny.yaml"
ON_GPU = {"pretrain_lm", "pretrain_point", "adversarial_train", "train_recurrent_gan"}
ON_CPU = {"split_corpus", "train_ngram", "choose_n", "approx_evaluate", "measure_windows", "draw_samples"}


def results(clone: Clone) -> set[str]:
    """Files below results/, without those that hold times."""
    root = clone.results()
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {str(path) for path in files if path.parts[0] not in ("logs", "benchmarks")}


def rule(comment: str) -> str:
    return comment.removeprefix("rule_").partition("_wildcards_")[0]


def test_slurm_computes_what_a_local_run_does(clone: Clone, finished: Clone, submit, cluster: Cluster):
    snakemake = submit(clone, config=TINY)
    assert snakemake.wait(timeout=2400) == 0, (clone.path / "snakemake.out").read_text()
    jobs = cluster.jobs(clone.path)
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert {rule(job.comment) for job in jobs} == ON_GPU | ON_CPU
    assert {job.node for job in jobs if rule(job.comment) in ON_GPU} == {GPU_NODE}
    asked = cluster.asked(next(job for job in jobs if rule(job.comment) == "adversarial_train"))
    assert asked >= {"NumCPUs=1", "MinMemoryNode=8000M", "TimeLimit=1-00:00:00", "TresPerJob=gres:gpu:1"}

    assert results(clone) == results(finished)
    _, different, unreadable = filecmp.cmpfiles(
        clone.results(), finished.results(), results(clone), shallow=False
    )
    assert (different, unreadable) == ([], [])
    assert "tables/table1.csv" in results(clone)

    again = clone.attempt("--workflow-profile=profiles/slurm-test", **cluster.environment)
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout
    assert len(cluster.jobs(clone.path)) == len(jobs)
