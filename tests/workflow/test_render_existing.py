"""A half-finished run is shown as far as it goes."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import reader
from browser import DESKTOP, Browser
from clone import Clone

EXISTING = ("--snakefile", "workflow/render_existing.smk")
LOST = [
    "evaluate/lstm.json",
    "evaluate/1-gram.csv",
    "samples/copy-sampler.json",
    "choose_n/3-gram.csv",
    "models/seqgan-published/history.csv",
    "sweep/recurrent-gan.json",
    "profile/bigram-perl.csv",
    "benchmarks/evaluate/4-gram-kn.1-of-1.tsv",
]


@pytest.fixture(scope="module")
def half(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone whose run was interrupted, after its remains were rendered."""
    clone = finished.copy(tmp_path_factory.mktemp("clone") / "half")
    for name in LOST:
        (clone.results() / name).unlink()
    shutil.rmtree(clone.results() / "tables")
    clone.run(*EXISTING)
    return clone


def table(clone: Clone, name: str) -> pd.DataFrame:
    frame = pd.read_csv(clone.results() / f"tables/{name}.csv", keep_default_na=False)
    return frame.set_index("Model")


def test_a_missing_model_is_a_row_with_its_reason(half: Clone, finished: Clone):
    shown, complete = table(half, "table1"), table(finished, "table1")
    reason = "not evaluated: results/tiny/evaluate/{} is missing"
    assert shown.loc["lstm", "Source"] == reason.format("lstm.json")
    assert shown.loc["1-gram", "Source"] == reason.format("1-gram.csv")
    assert set(shown.loc[["lstm", "1-gram"], "Direct BPC"]) == {""}
    assert set(shown.index) == set(complete.index)
    kept = shown.index.difference(["lstm", "1-gram"])
    pd.testing.assert_frame_equal(shown.loc[kept], complete.loc[kept])


def test_every_table_says_what_it_lacks(half: Clone):
    assert "samples/copy-sampler.json is missing" in table(half, "table2").loc["copy-sampler", "Sample"]
    assert "choose_n/3-gram.csv is missing" in table(half, "choose_n").loc["3-gram", "Chosen N"]
    assert "evaluate/lstm.json is missing" in table(half, "estimates").loc["lstm", "Estimator"]


def test_a_figure_shows_the_models_that_there_are(half: Clone):
    shown = pd.read_csv(half.results() / "figures/profile.csv")
    assert set(shown["model"]) == {"3-gram", "recurrent-gan"}


def test_pairs_are_those_of_the_models_that_are_there(half: Clone):
    pairs = table(half, "pairs-window-100")
    assert "evaluate/lstm.json is missing" in pairs.loc["lstm", "Estimators"]
    assert {"lstm", "1-gram"}.isdisjoint(pairs["Minus"])
    assert "4-gram-kn" in set(pairs["Minus"])
    drawn = pd.read_csv(half.results() / "figures/standings.csv")["model"]
    assert "4-gram-kn" in set(drawn)
    assert "lstm" not in set(drawn)


def test_costs_that_are_not_known_are_missing(half: Clone):
    costs = pd.read_csv(half.results() / "benchmarks/cost.csv", keep_default_na=False).set_index("Model")
    assert costs.loc["lstm", ["Evaluation time", "Draws per token"]].tolist() == ["missing"] * 2
    assert costs.loc["lstm", "Parameters"] == "2,275"
    assert costs.loc["4-gram-kn", ["Evaluation time", "Draws per token"]].tolist() == ["missing", "0 (exact)"]
    assert costs.loc["seqgan-published", "Training tokens"] == "missing"


def test_findings_say_what_the_run_does_not_contain(half: Clone):
    found = pd.read_csv(half.results() / "findings.csv").set_index("This run")["Verdict"]
    compared = found[found.index.str.startswith("seqgan-published-last minus lstm, window-100")]
    assert list(compared) == ["not in this run"]
    assert "no result of lstm" in compared.index[0]


def test_nothing_is_made_but_what_the_reader_looks_at(half: Clone):
    assert [name for name in LOST if (half.results() / name).exists()] == []
    assert half.plan(*EXISTING).jobs == set()


def test_a_run_without_results_has_nothing_to_show(repository: Clone):
    jobs = repository.plan(*EXISTING).jobs
    assert jobs <= {"write_findings", "render_methods", "render_start", "render_recurrence", "render_bound"}


@pytest.fixture(scope="module")
def half_report(half: Clone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    half.run(*EXISTING, f"--report={path}", "--report-stylesheet=workflow/report/report.css")
    return path


def test_a_half_finished_run_has_a_report(half_report: Path):
    assert "table1.html" in half_report.read_text(encoding="utf-8")


def test_that_report_opens_and_says_what_it_lacks(half_report: Path, chromium: Browser):
    chromium.resize(*DESKTOP)
    chromium.open(half_report)
    assert "not evaluated: results/tiny/evaluate/lstm.json is missing" in chromium.wait(reader.FRONT)
    chromium.click(reader.MENU.format("5 Training and cost"))
    cost, *trained = chromium.wait(reader.LABELS)
    assert cost.startswith("Cost")
    assert trained == ["Training of lstm", "Training of recurrent_gan"]
    chromium.click(reader.BUTTON.format(1, 1))
    reader.see_result(chromium)
    assert chromium.errors() == []


def test_a_run_without_results_has_a_start_page_that_says_so(clone: Clone):
    clone.run(*EXISTING)
    page = (clone.results() / "start.html").read_text(encoding="utf-8")
    assert "No model of Table 1 has been evaluated yet." in page
    assert "No model's convergence has been measured yet." in page.replace("&#39;", "'")
    assert (clone.results() / "methods.html").exists()
