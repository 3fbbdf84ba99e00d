"""The cost of a model is what its files say; what they do not say is not zero."""

import pandas as pd
import pytest

from ganlm.cost import Records, cost, duration, steps

LSTM = {"size": 2275, "training_tokens": 76_800, "device": "cpu"}
SEQGAN = {"parameters": {"start": "lstm"}, "device": "cpu"}
NOISY = {"size": 2491, "device": "cuda"}
NGRAM = {"distinct_ngrams": [27, 518, 4388], "training_tokens": 180_000}
# Two stages of four iterations each, of which every third and the last were recorded.
HISTORY = pd.DataFrame({"step": [2, 3, 6, 7], "epoch": [1, 1, 2, 2], "tokens": [10, 10, 20, 20]})
RATES = pd.DataFrame({"seconds": [1.0, 3.0, 5.0, 50.0]})


def result(estimator: str, draws: float) -> dict:
    return {"estimand": "sample", "estimator": estimator, "draws_per_token": draws}


def row(model: str, kind: str, **records: dict) -> dict:
    (found,) = cost({model: kind}, Records(**records)).to_dict("records")
    return found


@pytest.mark.parametrize("kind", ["lstm", "seqgan", "recurrent_gan", "ngram"])
def test_what_is_not_there_is_missing(kind: str):
    found = row("model", kind)
    assert found.pop("Model") == "model"
    assert set(found.values()) == {"missing"}


@pytest.mark.parametrize(
    ("kind", "said"), [("uniform", "none"), ("python", "its own"), ("command", "its own")]
)
def test_what_was_not_trained_here_has_no_training(kind: str, said: str):
    found = row("model", kind)
    assert {found[name] for name in ("Parameters", "Training tokens", "Training time", "Trained on")} == {
        said
    }
    assert found["Evaluation time"] == "missing"


def test_counts_are_the_parameters_of_an_n_gram_model():
    rates = pd.DataFrame({"seconds": [0.25]})
    found = row("3-gram", "ngram", sidecars={"3-gram": NGRAM}, rates={"3-gram": rates})
    assert [found[name] for name in ("Parameters", "Training tokens", "Trained on")] == [
        "4,933",
        "180,000",
        "CPU",
    ]
    assert found["Training time"] == "0.25 s"


def test_a_gan_has_the_network_that_it_starts_from():
    sidecars = {"lstm": LSTM, "seqgan": SEQGAN}
    assert row("seqgan", "seqgan", sidecars=sidecars)["Parameters"] == "2,275"
    assert row("seqgan", "seqgan", sidecars={"seqgan": SEQGAN})["Parameters"] == "missing"


def test_steps_that_were_not_recorded_count():
    """Forty tokens of the first stage and eighty of the second; four times 2 s and four times 27.5 s."""
    assert steps(HISTORY).tolist() == [3, 1, 3, 1]
    found = row(
        "gan", "recurrent_gan", sidecars={"gan": NOISY}, histories={"gan": HISTORY}, rates={"gan": RATES}
    )
    assert found["Training tokens"] == "120"
    assert found["Training time"] == "≈ 0:01:58"


def test_when_every_step_was_timed_time_is_their_sum():
    history = HISTORY.assign(step=range(4))
    found = row("gan", "seqgan", histories={"gan": history}, rates={"gan": RATES})
    assert found["Training time"] == "59 s"
    assert found["Training tokens"] == "60"


def test_a_network_was_trained_where_its_sidecar_says():
    assert row("gan", "recurrent_gan", sidecars={"gan": NOISY})["Trained on"] == "GPU"
    assert row("lstm", "lstm", sidecars={"lstm": LSTM})["Trained on"] == "CPU"


def test_evaluation_is_the_sum_of_its_jobs_once_all_are_done():
    times = {"own": pd.DataFrame({"s": [40.0, 30.0]})}
    summaries = {"own": {"results": [result("plug-in", 2000.0), result("harmonic", 2000.0)]}}
    found = row("own", "command", times=times, summaries=summaries)
    assert (found["Evaluation time"], found["Draws per token"]) == ("0:01:10", "2,000 (harmonic)")
    assert row("own", "command", times=times)["Evaluation time"] == "missing"


def test_exact_bits_need_no_draws():
    summaries = {"lstm": {"results": [result("harmonic", 2000.0), result("exact", 0.0)]}}
    assert row("lstm", "lstm", summaries=summaries)["Draws per token"] == "0 (exact)"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.04 s"), (9.81, "9.8 s"), (59.9, "0:01:00"), (61, "0:01:01"), (90_061, "25:01:01")],
)
def test_durations_can_be_read(seconds: float, shown: str):
    assert duration(seconds) == shown
