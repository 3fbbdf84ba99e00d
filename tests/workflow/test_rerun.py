"""What re-runs when something changes, and nothing else."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from clone import Clone, Plan

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class Change:
    """A row of the table: an edit of a finished run, and patterns of the jobs it calls for."""

    what: str
    edit: Edit
    jobs: tuple[str, ...]

    def __str__(self) -> str:
        return self.what


def touch_everything(root: Path) -> None:
    """Sources newest, then the results: corpus, ..., tables. So every time misleads."""
    now = time.time()
    files = (path for path in root.rglob("*") if path.is_file())
    for age, path in enumerate(sorted(files, key=lambda path: ("results" in path.parts, path))):
        os.utime(path, (now - age, now - age))


def comment_everywhere(root: Path) -> None:
    for path in [root / "Snakefile", *(root / "workflow").rglob("*.smk"), *modules(root)]:
        path.write_text(path.read_text() + "\n# A comment.\n")
    for path in modules(root):
        source = path.read_text()
        assert source.startswith('"""')
        path.write_text(source.replace('"""', '"""Edited: ', 1))


def modules(root: Path) -> list[Path]:
    return list((root / "workflow/scripts").rglob("*.py"))


def code(module: str) -> Edit:
    def edit(root: Path) -> None:
        path = root / "workflow/scripts" / module
        path.write_text(path.read_text() + "\nADDED = 1\n")

    return edit


def key(path: str, value: object) -> Edit:
    def edit(root: Path) -> None:
        file = root / "config/tiny.yaml"
        config = yaml.safe_load(file.read_text())
        *parents, last = path.split(".")
        block = config
        for parent in parents:
            block = block[parent]
        assert block.get(last) != value
        block[last] = value
        file.write_text(yaml.safe_dump(config, sort_keys=False))

    return edit


def own_generator(root: Path) -> None:
    path = root / "examples/copy_sampler.py"
    path.write_text(path.read_text() + "\nADDED = 1\n")


def quote_less(root: Path) -> None:
    file = root / "resources/literature.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], *lines[2:]]))


def remove_model(root: Path) -> None:
    file = root / "config/tiny.yaml"
    config = yaml.safe_load(file.read_text())
    del config["models"]["1-gram"]
    file.write_text(yaml.safe_dump(config, sort_keys=False))


NEW_JOBS = ("train_ngram 2-gram", "approx_evaluate 2-gram 1-of-1", "gather_evaluation 2-gram")
MEASURING, GATHERING, NGRAMS, EVERYTHING = "approx_evaluate *", "gather_evaluation *", "* ?-gram*", "*"
TABLES = ("render_table1", "render_differences", "render_estimates")
SHOWN = (*TABLES, "render_gap", "render_estimators")
BITS = (*SHOWN, "render_adversarial")
RENDERING = (*SHOWN, "render_choose_n")
OWN = ("* copy-sampler*", "approx_evaluate bigram-perl*", "gather_evaluation bigram-perl", *TABLES)
ADVERSARIAL = ("* seqgan-published*", "render_adversarial", *TABLES)

CHANGES = [
    Change("modification times of all files", touch_everything, ()),
    Change("comments and docstrings everywhere", comment_everywhere, ()),
    Change("`tables.py`", code("ganlm/tables.py"), (*TABLES, "render_choose_n")),
    Change("`resources/literature.csv`", quote_less, ("render_table1", "render_gap")),
    Change("`gather_evaluation.py`", code("gather_evaluation.py"), (GATHERING, *BITS)),
    Change("`approx_evaluate.py`", code("approx_evaluate.py"), (MEASURING, GATHERING, *BITS)),
    Change("`models/ngram.py`", code("ganlm/models/ngram.py"), (NGRAMS, *RENDERING)),
    Change("`models/uniform.py`", code("ganlm/models/uniform.py"), ("* uniform*", *TABLES)),
    Change("`training/seqgan.py`", code("ganlm/training/seqgan.py"), ADVERSARIAL),
    Change("`training/mle.py`", code("ganlm/training/mle.py"), ("* lstm*", *ADVERSARIAL)),
    Change("`logs.py`", code("ganlm/logs.py"), ()),
    Change("`measure_sampled.py`", code("ganlm/measure_sampled.py"), OWN),
    Change("the file of an own generator", own_generator, ("* copy-sampler*", *TABLES)),
    Change("`corpus.py`", code("ganlm/corpus.py"), (EVERYTHING,)),
    Change("a hyper-parameter of a model", key("models.3-gram.order", 2), ("* 3-gram*", *RENDERING)),
    Change("a model's published result, `paper`", key("models.1-gram.paper", "rhn"), ("render_table1",)),
    Change("a model's protocol, `window`", key("models.1-gram.window", "none"), ("render_table1",)),
    Change("a new model", key("models.2-gram", {"kind": "ngram", "order": 2}), (*NEW_JOBS, *TABLES)),
    Change("a model less", remove_model, TABLES),
    Change("`evaluation.block`", key("evaluation.block", 200), (MEASURING, GATHERING, *BITS)),
    Change("`evaluation.level`", key("evaluation.level", 0.9), (GATHERING, *BITS)),
    Change("`choose_n.threshold`", key("choose_n.threshold", 0.01), ("choose_n *", "render_choose_n")),
    Change("`corpus.characters`", key("corpus.characters", 100_000), (EVERYTHING,)),
]


@pytest.fixture(scope="module")
def everything(repository: Clone) -> Plan:
    """What a clone without results has to do."""
    return repository.plan()


def test_a_clone_runs_every_stage_once(everything: Plan):
    ngrams = ("1-gram", "3-gram", "4-gram-kn")
    assert matching(("train_*",), everything.jobs) == {f"train_ngram {model}" for model in ngrams}
    networks = {"lstm", "seqgan-published", "seqgan-published-e2"}
    assert everything.models == {"uniform", *ngrams, *networks, "copy-sampler", "bigram-perl"}
    assert everything.jobs >= {"split_corpus", "render_table1"}


def test_a_finished_run_has_nothing_to_do_and_says_so_at_once(finished: Clone):
    start = time.monotonic()
    output = finished.run()
    seconds = time.monotonic() - start
    assert "Nothing to be done" in output
    assert seconds < 5


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_re_runs_what_depends_on_it(change: Change, finished_clone: Clone, everything: Plan):
    change.edit(finished_clone.path)
    assert finished_clone.plan().jobs == matching(change.jobs, everything.jobs)


def matching(patterns: tuple[str, ...], jobs: frozenset[str]) -> set[str]:
    """The jobs that a pattern names; a pattern without `*` is a job that a clone need not have yet."""
    expected = {pattern for pattern in patterns if "*" not in pattern}
    for pattern in patterns:
        matches = {job for job in jobs if fnmatchcase(job, pattern)}
        assert matches or pattern in expected, f"{pattern} names no job"
        expected |= matches
    return expected


def test_after_a_change_a_run_settles_it(finished_clone: Clone):
    key("models.1-gram.order", 2)(finished_clone.path)
    table = finished_clone.results() / "tables/table1.csv"
    before = table.read_text().splitlines()
    finished_clone.run()
    after = table.read_text().splitlines()
    differing = [old for old, new in zip(before, after, strict=True) if old != new]
    assert len(differing) == 1
    assert ",1-gram," in differing[0]
    assert finished_clone.plan().jobs == set()
