"""Several seeds, as Snakemake plans them."""

import re

import yaml
from clone import ROOT, Clone, Plan

TRAINED = {
    "lstm": "pretrain_lm",
    "seqgan-published": "adversarial_train",
    "recurrent-gan": "train_recurrent_gan",
}


def plan(clone: Clone, seeds: list[int], *targets: str) -> Plan:
    """Of config/tiny.yaml with other seeds."""
    config = yaml.safe_load((ROOT / "config/tiny.yaml").read_text()) | {"seeds": seeds}
    (clone.path / "seeds.yaml").write_text(yaml.safe_dump(config))
    return clone.plan(*targets, config="seeds.yaml")


def test_every_seed_has_its_own_jobs_and_the_rest_is_shared(clone: Clone):
    one, two, three = plan(clone, [1]), plan(clone, [1, 2]), plan(clone, [1, 2, 3])
    for model, rule in TRAINED.items():
        assert f"{rule} {model}" in one.jobs
        assert {job for job in two.jobs if job.startswith(rule)} == {f"{rule} {model}-s{s}" for s in (1, 2)}
    assert {f"approx_evaluate lstm-s{s}-last 1-of-1" for s in (1, 2)} <= two.jobs
    assert "approx_evaluate seqgan-published-s2-e2 1-of-1" in two.jobs

    def without_seeds(jobs: frozenset[str]) -> set[str]:
        return {re.sub(r"-s\d(?=-|\.| |$)", "", job) for job in jobs}

    assert without_seeds(two.jobs) == one.jobs
    new = three.jobs - two.jobs
    assert new
    assert all("-s3" in job for job in new), "a third seed asks for its own jobs only"
    assert two.jobs <= three.jobs


def test_a_seqgan_starts_from_the_language_model_of_its_seed(clone: Clone):
    target = "results/tiny/models/seqgan-published-s2/model.safetensors"
    jobs = plan(clone, [1, 2], target).jobs
    assert jobs == {"split_corpus", "pretrain_lm lstm-s2", "adversarial_train seqgan-published-s2"}
