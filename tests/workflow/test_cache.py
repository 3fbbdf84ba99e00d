"""Clones share what is expensive through Snakemake's cache between workflows."""

from pathlib import Path

import pytest
from clone import Clone

MODEL = "results/tiny/models/3-gram/model.safetensors"
CACHED = [MODEL, "results/tiny/models/3-gram/model.json", "results/tiny/corpus/train.npy"]


def train(clone: Clone, cache: Path) -> str:
    """Make one model, sharing; stages that really run say that they started."""
    return clone.run("--cache", "--", MODEL, SNAKEMAKE_OUTPUT_CACHE=str(cache))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir()
    return path


def test_a_second_clone_finds_what_the_first_one_made(repository: Clone, cache: Path, tmp_path: Path):
    first, second = (repository.copy(tmp_path / name / "clone") for name in ("one", "another"))
    output = train(first, cache)
    assert "split_corpus started" in output
    assert "train_ngram 3-gram started" in output
    shared = set(cache.iterdir())

    output = train(second, cache)
    assert " started" not in output
    assert set(cache.iterdir()) == shared
    for name in CACHED:
        assert (second.path / name).is_symlink()
        assert (second.path / name).resolve() == (first.path / name).resolve()
        assert (second.path / name).resolve().parent == cache

    with (second.path / "workflow/scripts/ganlm/models/ngram.py").open("a") as file:
        file.write("\nADDED = 1\n")
    output = train(second, cache)
    assert "train_ngram 3-gram started" in output
    assert "split_corpus started" not in output
    assert (second.path / MODEL).resolve() != (first.path / MODEL).resolve()
    assert set(cache.iterdir()) > shared
