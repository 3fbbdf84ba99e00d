"""Clones share what is expensive through Snakemake's cache between workflows."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from clone import Clone

MODEL = "results/tiny/models/3-gram/model.safetensors"
CACHED = [MODEL, "results/tiny/models/3-gram/model.json", "results/tiny/corpus/train.npy"]


def train(clone: Clone, cache: Path) -> str:
    """Make one model, sharing; stages that really run say that they started."""
    return clone.run("--cache", "--", MODEL, SNAKEMAKE_OUTPUT_CACHE=str(cache))


@pytest.fixture(scope="module")
def lint(repository: Clone) -> str:
    return repository.run("--lint", config=None)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "rule", ["train_ngram", "pretrain_lm", "pretrain_point", "adversarial_train", "train_recurrent_gan"]
)
def test_whatever_trains_is_shared(rule: str, lint: str):
    assert f"rule {rule} is eligible for caching" in lint


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


def test_another_user_in_another_directory_finds_it_too(repository: Clone, cache: Path, tmp_path: Path):
    """A second user needs the right to read and to replace; place and name of the results do not matter."""
    train(repository.copy(tmp_path / "first"), cache)
    assert {path.stat().st_mode & 0o666 for path in cache.iterdir()} == {0o666}

    second, elsewhere = repository.copy(tmp_path / "second"), tmp_path / "elsewhere"
    tiny = yaml.safe_load((second.path / "config/tiny.yaml").read_text())
    config = second.write_config(
        "shared", corpus=tiny["corpus"], models={"triples": {"kind": "ngram", "order": 3}}
    )
    target = "results/shared/models/triples/model.safetensors"
    arguments = ("--cache", f"--directory={elsewhere}", "--", target)
    output = second.run(*arguments, config=str(second.path / config), SNAKEMAKE_OUTPUT_CACHE=str(cache))
    assert " started" not in output
    assert (elsewhere / target).resolve().parent == cache


def test_two_runs_at_once_do_not_corrupt_it(repository: Clone, cache: Path, tmp_path: Path):
    """Both may make the same file; whoever comes last replaces it by an equal one."""
    alone = repository.copy(tmp_path / "alone")
    alone.run(MODEL)
    clones = [repository.copy(tmp_path / f"at-once-{number}") for number in range(2)]
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(train, clone, cache) for clone in clones]:
            future.result()
    for clone in clones:
        for name in CACHED:
            assert (clone.path / name).resolve().parent == cache
            assert (clone.path / name).read_bytes() == (alone.path / name).read_bytes()
    assert not [path for path in cache.iterdir() if path.is_dir()], "no half-written file is left"
    third = repository.copy(tmp_path / "third")
    assert " started" not in train(third, cache)
