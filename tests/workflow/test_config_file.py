"""One config file is one complete experiment, and a wrong one stops before any job."""

import gzip
import json
from math import log2
from pathlib import Path

import pandas as pd
import pytest
import yaml
from clone import ROOT, Clone, Plan

from ganlm.config import checked
from ganlm.experiment import Experiment

SMALL = {"source": "bundled", "characters": 100_000}
UNIFORM = {"kind": "uniform"}
BIGRAM = {"kind": "ngram", "order": 2}


def models_of(config: str) -> set[str]:
    """All that is trained or evaluated unasked; the stages of a curriculum are not."""
    raw = yaml.safe_load((ROOT / config).read_text())
    experiment = Experiment(checked(raw, ROOT / "workflow/schemas/config.schema.yaml"))
    points = {point for grid in experiment.grids.values() for point in grid}
    stages = {
        stage for name in experiment.of_kind("recurrent_gan") for stage in experiment.epochs[name].values()
    }
    return (set(experiment.instances) - stages) | points


def top_folders(plan: Plan) -> set[str]:
    return {"/".join(Path(output).parts[:2]) for output in plan.outputs}


def written_table(clone: Clone, name: str) -> pd.DataFrame:
    return pd.read_csv(clone.results(name) / "tables/table1.csv").set_index("Model")


@pytest.mark.parametrize(
    ("config", "folders", "downloads"),
    [
        (None, {"results/demo"}, False),
        ("config/tiny.yaml", {"results/tiny"}, False),
        ("config/text8.yaml", {"results/text8", "results/downloads"}, True),
    ],
)
def test_an_experiment_is_planned_without_data_and_without_a_trace_of_another(
    config: str | None, folders: set[str], downloads: bool, repository: Clone
):
    plan = repository.plan(config=config)
    assert plan.models == models_of(config or "config/config.yaml")
    assert top_folders(plan) == folders
    assert ("download_text8" in plan.jobs) == downloads


@pytest.mark.parametrize("config", [None, "config/tiny.yaml"])
def test_a_key_on_the_command_line_overrides_one_in_the_file(config: str | None, repository: Clone):
    plan = repository.plan("--config", "name=other", config=config)
    assert plan.models == models_of(config or "config/config.yaml")
    assert top_folders(plan) == {"results/other"}


def test_own_packed_text_runs_with_the_defaults_of_the_schema(clone: Clone):
    text = "die katze tritt die treppe krumm äöü\n" * 1000
    with gzip.open(clone.path / "own.txt.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    config = clone.write_config(
        "own",
        corpus={"source": "file", "path": "own.txt.gz", "alphabet": "observed"},
        models={"flat": UNIFORM, "pairs": BIGRAM},
    )
    clone.run(config=config)
    assert [path.name for path in (clone.path / "results").iterdir()] == ["own"]
    assert protocols(clone.results("own") / "evaluate/flat.csv") == {"window-1000", "carried"}

    symbols = json.loads((clone.results("own") / "corpus/corpus.json").read_text())["alphabet"]["symbols"]
    assert set(symbols) >= set(text)
    table = written_table(clone, "own")
    assert float(table.loc["flat", "Direct BPC"]) == pytest.approx(log2(len(symbols)), abs=5e-4)
    assert float(table.loc["pairs", "Direct BPC"]) < 2


def protocols(file: Path) -> set[str]:
    return set(pd.read_csv(file)["protocol"])


def test_a_missing_text_is_named(clone: Clone):
    config = clone.write_config(
        "own", corpus={"source": "file", "path": "texts/absent.txt"}, models={"flat": UNIFORM}
    )
    result = clone.attempt(config=config)
    assert result.returncode != 0
    assert "Missing input files for rule split_corpus" in result.stdout
    assert "texts/absent.txt" in result.stdout
    assert "Traceback" not in result.stdout


def test_a_word_corpus_ends_in_a_table_of_perplexities(clone: Clone):
    config = clone.write_config(
        "words",
        corpus=SMALL | {"unit": "word", "vocabulary": 500},
        models={"flat": UNIFORM, "pairs": BIGRAM},
        evaluation={"windows": ["none"], "block": 50},
    )
    clone.run(config=config)
    table = written_table(clone, "words")
    assert float(table.loc["flat", "Direct Perplexity"]) == 500
    rows = pd.read_csv(clone.results("words") / "evaluate/pairs.csv").query("estimator == 'exact'")
    perplexity = 2 ** (rows["total"].sum() / rows["tokens"].sum())
    assert float(table.loc["pairs", "Direct Perplexity"]) == pytest.approx(perplexity, abs=0.05)
    assert perplexity < 200
    assert not any("BPC" in column for column in table.columns)
    assert "Perplexity" in (clone.results("words") / "tables/table1.html").read_text()


def test_samples_of_words_are_words_with_spaces_between_them(clone: Clone):
    config = clone.write_config(
        "words",
        corpus=SMALL | {"unit": "word", "vocabulary": 500},
        models={"pairs": BIGRAM},
        samples={"count": 5, "length": 40},
    )
    clone.run("results/words/samples/pairs.txt", config=config)
    lines = (clone.results("words") / "samples/pairs.txt").read_text().splitlines()
    symbols = json.loads((clone.results("words") / "corpus/corpus.json").read_text())["alphabet"]["symbols"]
    assert [len(line.split(" ")) for line in lines] == [40] * 5
    assert {word for line in lines for word in line.split(" ")} <= set(symbols)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"corpus": SMALL | {"charakters": 5}},
            "config: corpus has the unknown key 'charakters'; known keys:",
        ),
        (
            {"models": {"pairs": {"kind": "ngram", "order": "two"}}},
            "config: models.pairs.order must be of type integer, not 'two'",
        ),
        ({"models": {"flat": UNIFORM | {"window": 7}}}, "config: models.flat.window is 7, which is not in"),
        ({"models": None}, "config: models must be of type object, not None"),
    ],
)
def test_a_wrong_config_is_one_sentence_before_any_job(change: dict, sentence: str, clone: Clone):
    config = clone.write_config("wrong", **{"corpus": SMALL, "models": {"flat": UNIFORM}} | change)
    result = clone.attempt(config=config)
    assert result.returncode != 0
    assert len([line for line in result.stdout.splitlines() if line.startswith(sentence)]) == 1
    assert "Traceback" not in result.stdout
    assert "scripts/ganlm" not in result.stdout
    assert not (clone.path / "results").exists()


def test_a_config_file_without_models_does_not_borrow_those_of_the_demo(clone: Clone):
    config = clone.write_config("wrong", corpus=SMALL)
    result = clone.attempt("--dry-run", config=config)
    assert result.returncode != 0
    assert "config: the top level lacks the key 'models'" in result.stdout


def test_the_chosen_number_of_draws_is_used(clone: Clone):
    """With a grid of other N beside it, Table 1 shows the one that choose_n found."""
    config = clone.write_config(
        "own",
        corpus=SMALL,
        models={"pairs": BIGRAM},
        evaluation={"windows": [100], "block": 100, "draws": "chosen", "draws_grid": [20]},
        choose_n={"windows": 8, "positions": 40, "threshold": 0.01},
    )
    clone.run(config=config)
    chosen = json.loads((clone.results("own") / "choose_n/pairs.json").read_text())["draws"]
    table = pd.read_csv(clone.results("own") / "tables/table1.csv", dtype=str, keep_default_na=False)
    assert 100 < chosen < 300
    assert table.set_index("Model")["N"]["pairs"] == str(chosen)


def test_a_missing_file_of_an_own_generator_stops_before_any_job(clone: Clone):
    models = {"flat": UNIFORM, "mine": {"kind": "counts", "file": "absent.csv"}}
    config = clone.write_config("own", corpus=SMALL, models=models)
    result = clone.attempt("--dry-run", config=config)
    assert result.returncode != 0
    assert "config: models.mine needs the file absent.csv, which does not exist" in result.stdout


def test_strings_of_a_config_reach_no_shell(clone: Clone):
    """A path that a shell would take apart is read like any other."""
    name = "a text; touch pwned; $(touch pwned) && `touch pwned` 'q"
    (clone.path / name).write_text("die katze tritt die treppe krumm " * 100)
    config = clone.write_config(
        "own", corpus={"source": "file", "path": name}, models={"flat": UNIFORM}, evaluation={"windows": [10]}
    )
    clone.run("results/own/evaluate/flat.json", config=config)
    assert not list(clone.path.rglob("pwned"))
