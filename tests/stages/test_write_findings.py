"""The findings of a real run, against its result files."""

import json
import re

import pandas as pd
import pytest
from clone import Clone

from ganlm.summary import find


@pytest.fixture
def findings(finished: Clone) -> pd.DataFrame:
    return pd.read_csv(finished.results() / "findings.csv", keep_default_na=False)


def test_the_uniform_distribution_is_reproduced(findings: pd.DataFrame):
    (row,) = findings[findings["This run"].str.startswith("uniform ")].itertuples()
    assert (row.Value, row.Verdict) == ("+0.0049 bits", "holds")


def test_a_difference_is_that_of_the_results(findings: pd.DataFrame, finished: Clone):
    ours, theirs = (exact_bits(finished, name) for name in ("seqgan-published-last", "lstm"))
    (row,) = findings[findings["This run"].str.startswith("seqgan-published-last minus lstm")].itertuples()
    assert float(row.Value.split()[0]) == pytest.approx(ours - theirs, abs=1e-4)


def exact_bits(clone: Clone, model: str) -> float:
    results = json.loads((clone.results() / f"evaluate/{model}.json").read_text())["results"]
    return find(results, "window-100", "exact")["mean"]


def test_no_sentence_is_without_a_number(finished: Clone):
    """Except those that say that there is none."""
    text = (finished.results() / "findings.md").read_text()
    sentences = re.findall(r"^- \*\*([^*]+)\*\*: (.*)$", text, re.MULTILINE)
    measured = [sentence for verdict, sentence in sentences if not verdict.startswith("not ")]
    assert len(measured) > 15
    assert all(re.search(r"\d (bits|draws|tokens|percentage points) \[.*\]", text) for text in measured)


def test_the_text_says_how_much_it_rests_on(finished: Clone):
    text = (finished.results() / "findings.md").read_text()
    assert "the bundled beginning of text8, 200,000 characters, of which 10,000 are for testing" in text
    assert "known probabilities are measured on all of these, others on 500" in text
    assert "for one training, not over seeds" in text


def test_samples_are_those_of_the_weights_that_training_ended_with(findings: pd.DataFrame):
    shown = findings[findings["This run"].str.startswith("%-IN-TEST-1")]["This run"]
    assert list(shown) == ["%-IN-TEST-1 of seqgan-published-last minus lstm"]


def test_estimates_from_both_sides_enter_the_interval(findings: pd.DataFrame, finished: Clone):
    results = json.loads((finished.results() / "sweep/test/recurrent-gan.json").read_text())["results"]
    at_least = (
        find(results, "window-20", "harmonic")["mean"] - find(results, "window-5", "mean-softmax")["mean"]
    )
    (row,) = findings[findings["This run"].str.startswith("windows of 20 minus")].itertuples()
    assert float(row.Value.split()[0]) == pytest.approx(at_least, abs=1e-4)
