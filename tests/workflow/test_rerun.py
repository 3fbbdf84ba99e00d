"""What re-runs when something changes, and nothing else; the table in the README says the same.

`PYTHONPATH=tests python tests/workflow/test_rerun.py CLONE`, given a clone after a run of config/tiny.yaml,
prints that table.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from clone import ROOT, Clone, Plan, cpu_seconds

Edit = Callable[[Path], None]
PACKAGES = "packages"
ALL, NONE, SHOWN_BY = "everything", "nothing", "what shows them"
SHOWING = ("render_", "write_")


@dataclass(frozen=True)
class Change:
    """A row of the table: an edit of a finished run, patterns of the jobs it calls for, and exceptions."""

    what: str
    edit: Edit
    jobs: tuple[str, ...]
    spared: tuple[str, ...] = ()

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


def other_text(root: Path) -> None:
    (root / "other.txt").write_text("the quick brown fox jumps " * 10_000)
    file = root / "config/tiny.yaml"
    config = yaml.safe_load(file.read_text())
    config["corpus"] |= {"source": "file", "path": "other.txt"}
    file.write_text(yaml.safe_dump(config, sort_keys=False))


def other_torch(root: Path) -> None:
    """As if another version were installed: its description is found before that of the real one."""
    folder = root / PACKAGES / "torch-9.9.9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")


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


NEW_JOBS = (
    "train_ngram 2-gram",
    "draw_samples 2-gram",
    "score_samples 2-gram",
    "approx_evaluate 2-gram 1-of-1",
    "gather_evaluation 2-gram",
)
MEASURING, GATHERING, NGRAMS, EVERYTHING = "approx_evaluate *", "gather_evaluation *", "* ?-gram*", "*"
FINDINGS = "write_findings"
SCORING = ("score_samples *", "render_table2", FINDINGS)
SAMPLING = ("draw_samples *", *SCORING)
BIT_TABLES = ("render_table1", "render_differences", "render_estimates")
TABLES = (*BIT_TABLES, "render_table2")
EACH_MODEL = ("render_standings", "render_cost")
ALL_MODELS = (*EACH_MODEL, "render_pairs *")
SWEEPING = ("*_windows *", "choose_window *", "render_sweep")
PROFILE = ("gather_profile *", "render_profile")
SHOWN = ("render_gap", "render_estimators")
BITS = (*BIT_TABLES, *SHOWN, *ALL_MODELS, "render_adversarial", FINDINGS)
MEASURED = (*BITS, *SWEEPING, *PROFILE)
GATHERED = (*BITS, "gather_windows *", "choose_window *", "render_sweep")
RENDERING = (
    *(*TABLES, *SHOWN, *ALL_MODELS),
    *("render_choose_n", "render_sweep", "render_profile", FINDINGS),
)
ADVERSARIAL = ("* seqgan*", "render_adversarial", *TABLES, *ALL_MODELS, FINDINGS)
NETWORKS = ("* lstm*", *ADVERSARIAL, "pretrain_point *", "tune *")
NEW_POINT = "pretrain_point sizes hidden-24"
OWN_BITS = (
    *("*_evaluat* copy-sampler*", "*_evaluat* bigram-perl*", "*_window* *bigram-perl*", "render_sweep"),
    *("gather_profile bigram-perl", "render_profile"),
)
WITHOUT_DATA = ("render_recurrence", "render_bound")
CURVES = ("render_choose_n", "render_sweep", "render_adversarial", "render_training *", "render_profile")
FIGURES = (*SHOWN, *WITHOUT_DATA, *CURVES, "render_standings", "render_pairs *")
WRITING = ("*_samples recurrent-gan", "render_table2")
START, SHOWN_AT_THE_START = "render_start", {"render_table1", "render_choose_n", FINDINGS}
METHODS = "render_methods"

CHANGES = [
    Change("modification times of all files", touch_everything, ()),
    Change("comments and docstrings everywhere", comment_everywhere, ()),
    Change(
        "`tables.py`",
        code("ganlm/tables.py"),
        (*TABLES, "render_choose_n", "render_estimators", "render_pairs *"),
    ),
    Change(
        "`resources/literature.csv`",
        quote_less,
        ("render_table1", "render_gap", "render_standings", FINDINGS),
    ),
    Change("`gather_evaluation.py`", code("gather_evaluation.py"), (GATHERING, *GATHERED)),
    Change("`approx_evaluate.py`", code("approx_evaluate.py"), (MEASURING, GATHERING, *MEASURED)),
    Change("`models/ngram.py`", code("ganlm/models/ngram.py"), (NGRAMS, *RENDERING)),
    Change(
        "`models/uniform.py`", code("ganlm/models/uniform.py"), ("* uniform*", *TABLES, *ALL_MODELS, FINDINGS)
    ),
    Change("`cost.py`", code("ganlm/cost.py"), ("render_cost",)),
    Change("`curves.py`", code("ganlm/curves.py"), ("render_training *",)),
    Change("`profile.py`", code("ganlm/profile.py"), PROFILE),
    Change("`figures/style.py`", code("ganlm/figures/style.py"), FIGURES),
    Change("`device`", key("device", "cpu"), ()),
    Change("`training/seqgan.py`", code("ganlm/training/seqgan.py"), ADVERSARIAL),
    Change("`training/mle.py`", code("ganlm/training/mle.py"), NETWORKS),
    Change("`tuning.py`", code("ganlm/tuning.py"), ("tune *",)),
    Change(
        "`training/wgan.py`",
        code("ganlm/training/wgan.py"),
        (
            *("* recurrent*", "*_window* *recurrent-gan*"),
            *("render_sweep", "render_choose_n", "render_profile"),
            *(*TABLES, *EACH_MODEL, "render_pairs window-7", FINDINGS),
        ),
    ),
    Change("how a model writes, `refeed`", key("models.recurrent-gan.refeed", True), WRITING),
    Change("`logs.py`", code("ganlm/logs.py"), ()),
    Change(
        "`measure_sampled.py`",
        code("ganlm/measure_sampled.py"),
        (*OWN_BITS, *BIT_TABLES, *EACH_MODEL, "render_pairs window-100"),
    ),
    Change("`samples.py`", code("ganlm/samples.py"), SAMPLING),
    Change("`textmetrics.py`", code("ganlm/textmetrics.py"), SCORING),
    Change(
        "the file of an own generator",
        own_generator,
        ("* copy-sampler*", *TABLES, *EACH_MODEL, "render_pairs window-100"),
    ),
    Change("`corpus.py`", code("ganlm/corpus.py"), (EVERYTHING,), WITHOUT_DATA),
    Change("a hyper-parameter of a model", key("models.3-gram.order", 2), ("* 3-gram*", *RENDERING)),
    Change(
        "a model's published result, `paper`", key("models.1-gram.paper", "rhn"), ("render_table1", FINDINGS)
    ),
    Change("a model's protocol, `window`", key("models.1-gram.window", "none"), ("render_table1",)),
    Change(
        "a new model", key("models.2-gram", {"kind": "ngram", "order": 2}), (*NEW_JOBS, *TABLES, *ALL_MODELS)
    ),
    Change("a model less", remove_model, (*TABLES, *ALL_MODELS)),
    Change("a learning rate", key("models.lstm.training.learning_rate", 0.02), NETWORKS),
    Change("one more value in a grid", key("tune.sizes.grid.hidden", [8, 32, 24]), (NEW_POINT, "tune *")),
    Change("another value in a grid", key("tune.sizes.grid.hidden", [8, 24]), (NEW_POINT, "tune *")),
    Change("a value less in a grid", key("tune.sizes.grid.hidden", [32]), ("tune *",)),
    Change("`evaluation.block`", key("evaluation.block", 200), (MEASURING, GATHERING, *MEASURED)),
    Change("`evaluation.level`", key("evaluation.level", 0.9), (GATHERING, *GATHERED, "render_profile")),
    Change(
        "`choose_n.epsilon`",
        key("choose_n.epsilon", 0.05),
        ("choose_n *", "render_choose_n", "render_bound", FINDINGS),
    ),
    Change(
        "`choose_n.threshold`", key("choose_n.threshold", 0.01), ("choose_n *", "render_choose_n", FINDINGS)
    ),
    Change("`findings.margin`", key("findings.margin", 0.02), (FINDINGS,)),
    Change("`samples.count`", key("samples.count", 6), SAMPLING),
    Change("`samples.reference_line`", key("samples.reference_line", 32), SCORING),
    Change("`sweep.draws`", key("sweep.draws", 30), (*SWEEPING, FINDINGS)),
    Change("`samples.shown`", key("samples.shown", 1), ("render_table2",)),
    Change(
        "`estimators.py`",
        code("ganlm/estimators.py"),
        (MEASURING, GATHERING, *MEASURED, "choose_n *", "render_choose_n"),
    ),
    Change(
        "N, `evaluation.draws`",
        key("evaluation.draws", 300),
        (MEASURING, GATHERING, *BITS, *PROFILE, "render_choose_n", "render_bound"),
    ),
    Change("another text, `corpus.path`", other_text, (EVERYTHING,), WITHOUT_DATA),
    Change(
        "another version of torch",
        other_torch,
        (
            "* recurrent*",
            "*_window* *recurrent-gan*",
            "render_sweep",
            "render_choose_n",
            "render_profile",
            *NETWORKS,
            "render_training *",
        ),
    ),
    Change("`corpus.characters`", key("corpus.characters", 100_000), (EVERYTHING,), WITHOUT_DATA),
]


SECOND_SEED = Change("a second seed", key("seeds", [1, 2]), ())
TRAINED = ("lstm", "seqgan-published", "recurrent-gan")


def readme_table() -> dict[str, list[str]]:
    """The rows of the README's section, change first."""
    section = re.split(r"^## What re-runs.*$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| (.*) \| (.*) \| ?(.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return {change: [rules, models.strip()] for change, rules, models in rows[1:] if set(change) != {"-"}}


README = readme_table()


@pytest.fixture(scope="module")
def everything(repository: Clone) -> Plan:
    """What a clone without results has to do."""
    return repository.plan()


def test_a_clone_runs_every_stage_once(everything: Plan):
    ngrams = ("1-gram", "3-gram", "4-gram-kn")
    assert matching(("train_ngram *",), everything.jobs) == {f"train_ngram {model}" for model in ngrams}
    networks = {f"{name}{last}" for name in ("lstm", "seqgan-published") for last in ("", "-last")}
    networks |= {"seqgan-published-e2", "recurrent-gan"}
    points = {"hidden-8", "hidden-32"}
    assert everything.models == {"uniform", *ngrams, *networks, *points, "copy-sampler", "bigram-perl"}
    assert everything.jobs >= {"split_corpus", "render_table1"}


def test_a_finished_run_has_nothing_to_do_and_says_so_at_once(finished: Clone):
    before = cpu_seconds()
    output = finished.run()
    assert "Nothing to be done" in output
    assert cpu_seconds() - before < 5


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_re_runs_what_depends_on_it(change: Change, finished_clone: Clone, everything: Plan):
    found = replanned(change, finished_clone)
    expected = with_start(matching(change.jobs, everything.jobs) - set(change.spared))
    assert found.jobs - {METHODS} == expected - {METHODS}
    if change.what in README:
        assert README[change.what] == cells(found, everything)


def with_start(jobs: set[str]) -> set[str]:
    """What the start page shows, it shows anew."""
    return jobs | {START} if jobs & SHOWN_AT_THE_START else jobs


@pytest.mark.parametrize(
    ("edit", "rendered"),
    [
        (touch_everything, set()),
        (comment_everywhere, set()),
        (code("ganlm/logs.py"), set()),
        (key("device", "cpu"), {METHODS}),
        (code("ganlm/curves.py"), {METHODS}),
    ],
    ids=["times", "comments", "logs.py", "config", "code"],
)
def test_the_page_on_methods_follows_config_and_code(edit: Edit, rendered: set[str], finished_clone: Clone):
    edit(finished_clone.path)
    assert finished_clone.plan().jobs & {METHODS} == rendered


def test_a_second_seed_re_runs_what_is_trained_under_new_names(finished_clone: Clone, everything: Plan):
    """N-grams and own generators stay as they are."""
    found = replanned(SECOND_SEED, finished_clone)
    assert models(found) == {f"{row}-s{seed}" for row in TRAINED for seed in (1, 2)}
    assert README[SECOND_SEED.what] == cells(found, everything)


def replanned(change: Change, clone: Clone) -> Plan:
    """What Snakemake would do after the change."""
    change.edit(clone.path)
    return Plan.parse(clone.run("--dry-run", PYTHONPATH=str(clone.path / PACKAGES)))


def cells(found: Plan, everything: Plan) -> list[str]:
    """The rules of a plan and the models that they are about, as the README has them."""
    about, known = models(found), models(everything)
    concerned = "all" if about >= known else ", ".join(sorted(about))
    rules = sorted(rule for rule in names(found) if rule.startswith(SHOWING))
    stages = sorted(names(found) - set(rules))
    if stages == sorted(rule for rule in names(everything) if not rule.startswith(SHOWING)):
        return [ALL, concerned]
    if stages:
        rules = [*stages, *([SHOWN_BY] if rules else [])]
    return [", ".join(rule if rule == SHOWN_BY else f"`{rule}`" for rule in rules) or NONE, concerned]


def names(plan: Plan) -> set[str]:
    """Rules, but for the methods page, which follows everything."""
    return {job.split()[0] for job in plan.jobs} - {METHODS}


def models(plan: Plan) -> set[str]:
    """Without what is kept of their training; points of a grid are no models."""
    rows = {re.sub(r"-(e\d+|last)$", "", model) for model in plan.models}
    return {row for row in rows if not row.startswith("hidden-")}


def test_the_readme_has_the_changes_that_everybody_makes():
    asked = {
        *("comments and docstrings everywhere", "`tables.py`", "`figures/style.py`", "`estimators.py`"),
        *("N, `evaluation.draws`", "a learning rate", "a second seed", "a new model"),
        *("another text, `corpus.path`", "another version of torch"),
    }
    assert asked <= set(README) <= {change.what for change in (*CHANGES, SECOND_SEED)}


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


def main() -> None:
    """Print the README's table, row by row, for the changes it has now."""
    finished = Clone(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        everything = Clone.of_repository(Path(folder) / "repository").plan()
        shown = [change for change in (*CHANGES, SECOND_SEED) if change.what in README]
        for number, change in enumerate(shown):
            found = replanned(change, finished.copy(Path(folder) / str(number)))
            print(f"| {' | '.join([change.what, *cells(found, everything)])} |", flush=True)


if __name__ == "__main__":
    main()
