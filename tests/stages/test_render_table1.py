"""The stage from result files to Table 1, on the results of a real run."""

from collections.abc import Callable
from math import log2
from pathlib import Path

import pandas as pd
import pytest
import render_table1
from clone import ROOT, Clone

OUTPUTS = {
    "csv": "table1.csv",
    "markdown": "table1.md",
    "latex": "table1.tex",
    "html": "table1.html",
    "text": "table1.txt",
}
MODELS = {
    "uniform": {"kind": "uniform", "window": None, "paper": "uniform"},
    "3-gram": {"kind": "ngram", "order": 3, "window": "none", "paper": None},
    "1-gram": {"kind": "ngram", "order": 1, "window": None, "paper": None},
}


@pytest.fixture
def tables(job: Callable, finished: Clone) -> Path:
    """The folder of the stage's outputs; one model is shown at a protocol of its own."""
    results = finished.results()
    snakemake = job(
        inputs={
            "summaries": [str(results / f"evaluate/{name}.json") for name in MODELS],
            "corpus": str(results / "corpus/corpus.json"),
            "literature": str(ROOT / "resources/literature.csv"),
        },
        outputs=OUTPUTS,
        params={
            "models": MODELS,
            "seeds": {name: [name] for name in MODELS},
            "missing": {},
            "windows": [100, "none"],
            "draws": 200,
            "code": {},
        },
    )
    render_table1.main(snakemake)
    return Path(snakemake.output.csv).parent


@pytest.fixture
def frame(tables: Path) -> pd.DataFrame:
    return pd.read_csv(tables / "table1.csv", dtype=str, keep_default_na=False)


def test_measured_rows_are_the_models_in_order_at_their_protocols(frame: pd.DataFrame):
    measured = frame[frame["Source"] == "measured"]
    assert list(measured["Model"]) == ["3-gram", "1-gram", "uniform"]
    assert list(measured["Protocol"]) == ["carried", "window-100", "window-100"]


def test_a_measured_number_is_the_mean_of_the_result_file(frame: pd.DataFrame, finished: Clone):
    rows = pd.read_csv(finished.results() / "evaluate/3-gram.csv")
    rows = rows.query("protocol == 'carried' and estimand == 'sample' and estimator == 'exact'")
    shown = float(frame.set_index("Model").loc["3-gram", "Direct BPC"])
    assert shown == pytest.approx(rows["total"].sum() / rows["tokens"].sum(), abs=5e-4)


def test_uniform_is_log2_of_27_beside_what_the_paper_reported(frame: pd.DataFrame):
    row = frame.set_index("Model").loc["uniform"]
    assert float(row["Direct BPC"]) == pytest.approx(log2(27), abs=5e-4)
    assert float(row["Paper BPC"]) == pytest.approx(log2(27), abs=6e-3)


def test_what_others_measured_is_marked_and_shown_once(frame: pd.DataFrame):
    literature = pd.read_csv(ROOT / "resources/literature.csv", dtype=str, keep_default_na=False)
    quoted = frame[frame["Source"].str.startswith("quoted: ")]
    without_number = frame[frame["Source"] == "not yet run"]
    assert list(without_number["Model"]) == ["LeakGAN"]
    reproduced = literature["id"].isin(["uniform", "leakgan"])
    assert list(quoted["Model"]) == list(literature[~reproduced]["model"])
    assert set(quoted["Direct BPC"]) == {""}
    assert len(quoted) + len(without_number) + len(MODELS) == len(frame)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_format_shows_every_row(name: str, tables: Path, frame: pd.DataFrame):
    text = (tables / OUTPUTS[name]).read_text()
    for model, bpc in zip(frame["Model"], frame["Direct BPC"], strict=True):
        escaped = model.replace("&", r"\&") if name == "latex" else model
        escaped = escaped.split(" ")[0] if name == "text" else escaped
        assert any(escaped in line and bpc in line for line in text.splitlines()), model


def test_latex_has_the_rules_of_booktabs(tables: Path):
    text = (tables / "table1.tex").read_text()
    assert [text.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 1, 1]
