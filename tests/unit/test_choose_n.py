import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from latent import Finite
from measuring import Drawing

from ganlm import choose_n, tables
from ganlm.choose_n import Settings, pilot_windows
from ganlm.generator import Explicit
from ganlm.models import ngram
from ganlm.models.ngram import NGram
from ganlm.randomness import keyed_rng
from ganlm.sample_size import convergence_curve, fit_law

TEXT = (Path(__file__).parents[2] / "examples/training.txt").read_text()
SYMBOLS = sorted(set(TEXT))
IDS = np.array([SYMBOLS.index(character) for character in TEXT], np.uint8)
MODEL = NGram.train(IDS[:100_000], len(SYMBOLS), ngram.Settings(3))
TOKENS = IDS[100_000:]
WINDOW = 100
SETTINGS = Settings(
    alpha=10, threshold=1e-3, max_draws=3000, windows=64, positions=448, half_width=0.1, epsilon=0.01
)
PILOTS = {
    "explicit": lambda settings=SETTINGS, seed=1, tokens=TOKENS: choose_n.explicit(
        MODEL, tokens, WINDOW, settings, (seed, "model")
    ),
    "sampled": lambda settings=SETTINGS, seed=1, tokens=TOKENS: choose_n.sampled(
        Drawing(MODEL), tokens, WINDOW, settings, (seed, "model")
    ),
}


def summarised(result, settings=SETTINGS, positions=20_000):
    return choose_n.summary(result, settings, len(SYMBOLS), WINDOW, positions)


@pytest.fixture(scope="module")
def found():
    """What both pilots of the same model say."""
    results = {name: pilot() for name, pilot in PILOTS.items()}
    return {name: (result, summarised(result)) for name, result in results.items()}


@pytest.mark.parametrize("kind", PILOTS)
def test_the_curve_follows_the_published_law(found, kind):
    """E(N) = 10 c / N from N = 100 on, so the rule's N is near 10 c / γ'."""
    result, summary = found[kind]
    assert summary["slope"] == pytest.approx(-1, abs=0.02)
    assert 0.1 < summary["constant"] < 0.25
    tail = result.curve.draws >= 100
    law = 10 * summary["constant"] / result.curve.draws[tail]
    np.testing.assert_allclose(result.curve.step[tail], law, rtol=0.25)
    assert summary["crossing"] == pytest.approx(10 * summary["constant"] / 1e-3)
    assert summary["draws"] == pytest.approx(summary["crossing"], rel=0.15)
    assert summary["first_below"] <= summary["draws"]


def test_both_pilots_of_a_model_find_the_same(found):
    (_, exact), (_, drawn) = found["explicit"], found["sampled"]
    assert drawn["constant"] == pytest.approx(exact["constant"], rel=0.02)
    assert drawn["positions"] == exact["positions"]
    assert drawn["bounds"] == pytest.approx(exact["bounds"], rel=0.01)
    assert drawn["bounds"]["hoeffding"] == pytest.approx(4.3e6, rel=0.01)
    assert drawn["bounds"]["chernoff"] <= drawn["bounds"]["bernstein"] < drawn["bounds"]["hoeffding"]


def test_what_the_rule_hides_is_known_of_an_explicit_model(found):
    """The largest error falls as 1/√N: where the rule is content, it is several times γ'."""
    curve = found["explicit"][0].curve
    at = dict(zip(curve.draws.tolist(), curve.error, strict=True))
    assert at[2500] / at[100] == pytest.approx(0.2, rel=0.15)
    assert at[found["explicit"][1]["draws"]] > 3e-3
    assert found["sampled"][0].curve.error is None


def test_text_noise_of_an_explicit_model_is_that_of_its_windows(found):
    windows, _ = pilot_windows(TOKENS, WINDOW, SETTINGS)
    means = MODEL.surprisal(MODEL.start(len(windows)), windows)[0].mean(axis=1)
    assert found["explicit"][0].window_variance == pytest.approx(means.var(ddof=1), rel=0.2)


def test_the_plan_reaches_its_target_with_either_pilot(found):
    plans = {kind: summary["plan"] for kind, (_, summary) in found.items()}
    for plan in plans.values():
        assert plan["feasible"]
        assert plan["half_width"] <= SETTINGS.half_width
        assert plan["positions"] == 20_000
        assert 5 < plan["draws_per_token"] < 60
        assert plan["positions_for_text"] <= 20_000
    exact, drawn = plans["explicit"], plans["sampled"]
    assert drawn["text_se"] == pytest.approx(
        exact["text_se"], rel=0.5
    )  # a few positions against whole windows
    assert drawn["monte_carlo_se"] == pytest.approx(exact["monte_carlo_se"], rel=0.2)


def test_text_noise_is_that_of_independent_tokens_where_they_are():
    rng = np.random.default_rng(5)
    p = np.bincount(IDS, minlength=len(SYMBOLS)) / len(IDS)
    unigram = NGram.train(IDS, len(SYMBOLS), ngram.Settings(1))
    tokens = rng.choice(len(SYMBOLS), 100_000, p=p)
    settings = replace(SETTINGS, windows=400, positions=4000, max_draws=200)
    plan = summarised(choose_n.explicit(unigram, tokens, WINDOW, settings, (1,)), settings)["plan"]
    variance = (p * np.log2(p) ** 2).sum() - (p * np.log2(p)).sum() ** 2
    assert plan["text_se"] == pytest.approx((variance / 20_000) ** 0.5, rel=0.25)


def test_a_target_out_of_reach_is_said_to_be(found):
    strict = replace(SETTINGS, half_width=1e-4)
    plan = summarised(found["explicit"][0], strict)["plan"]
    assert not plan["feasible"]
    assert plan["half_width"] > 1e-4
    assert plan["positions_for_text"] > 1e6


def test_a_curve_that_ends_too_early_chooses_nothing():
    settings = replace(SETTINGS, max_draws=400)
    summary = summarised(PILOTS["explicit"](settings), settings)
    assert summary["draws"] is None
    assert summary["first_below"] is None
    assert summary["crossing"] > 1000


@pytest.mark.parametrize("kind", PILOTS)
def test_random_numbers_depend_on_the_key(kind):
    settings = replace(SETTINGS, max_draws=200, windows=8, positions=40)
    one, same, other = (PILOTS[kind](settings, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.curve.step, same.curve.step)
    assert (one.curve.step != other.curve.step).any()


@pytest.mark.parametrize(
    ("length", "window", "windows", "positions"),
    [
        (50_000, 1000, 64, 448),
        (50_000, 7, 64, 448),
        (2350, 100, 64, 448),
        (100, 100, 64, 10),
        (5000, 10, 64, 2),
        (999, 10, 5, 10_000),
    ],
)
def test_windows_are_whole_and_spread_over_the_text(length, window, windows, positions):
    text = np.arange(length)
    found, offsets = pilot_windows(text, window, replace(SETTINGS, windows=windows, positions=positions))
    starts = found[:, 0]
    assert len(starts) == len(set(starts)) == min(windows, length // window)
    assert (starts % window == 0).all()
    np.testing.assert_array_equal(found, starts[:, None] + np.arange(window))
    assert starts[0] == 0
    if len(starts) > 1:
        steps = np.diff(starts)
        assert steps.max() - steps.min() <= window
        assert length - starts[-1] < 2 * steps.max() + window
    strides = set(np.diff(offsets))
    assert offsets[0] == min(strides, default=window) // 2, "the middle of the first stride"
    assert offsets[-1] < window
    assert len(strides) <= 1
    wanted = min(max(positions, len(starts)), found.size)
    assert wanted - len(starts) <= len(starts) * len(offsets) <= 2 * wanted + len(starts)


@pytest.mark.parametrize("kind", PILOTS)
def test_a_text_without_one_window_gets_one_sentence(kind):
    with pytest.raises(ValueError, match="the test part has 99 tokens, less than one window of 100"):
        PILOTS[kind](tokens=TOKENS[:99])


@pytest.mark.parametrize("kind", PILOTS)
def test_one_window_is_enough(kind):
    settings = replace(SETTINGS, max_draws=200)
    summary = summarised(PILOTS[kind](settings, tokens=TOKENS[:150]), settings)
    assert summary["positions"] == 100
    assert np.isfinite(summary["plan"]["text_se"])


def test_a_model_with_impossible_tokens_has_a_plan_that_says_so():
    """Its bits are infinite, which no number of draws finds out; the pilot must not stumble over them."""

    class OneSymbol(Explicit):
        vocabulary = len(SYMBOLS)

        def start(self, rows):
            return rows

        def predict(self, state):
            return np.tile(np.eye(self.vocabulary)[0] / 2 + np.eye(self.vocabulary)[1] / 2, (state, 1))

        def feed(self, state, _):
            return state

    settings = replace(SETTINGS, max_draws=200)
    summary = summarised(choose_n.explicit(OneSymbol(), TOKENS, WINDOW, settings, (1,)), settings)
    assert not summary["plan"]["feasible"]
    assert summary["plan"]["expected_bias_bits"] == -np.inf
    assert np.isfinite(summary["plan"]["text_se"])
    json.dumps(summary)


TEXT_OF_SIX = np.random.default_rng(5).choice(6, 5000, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05]).astype(np.uint8)


@pytest.fixture(scope="module", params=[0.5, 3.0, 30.0], ids=["soft", "sharp", "one-hot"])
def noisy(request):
    """A latent model, what its pilot finds, and the kinds of noise it has at each position looked at."""
    model = Finite.random(request.param)
    result = choose_n.latent(model, TEXT_OF_SIX, 7, SETTINGS, (1, "model"))
    windows, offsets = pilot_windows(TEXT_OF_SIX, 7, SETTINGS)
    contexts = np.concatenate([np.zeros_like(windows[:, :1]), windows[:, :-1] + 1], axis=1)[:, offsets]
    return model, result, contexts.ravel()


def test_the_curve_of_a_latent_model_follows_the_law_of_its_softmaxes(noisy):
    """c is the mean max_v |mean of 10 softmaxes - E_z p|, which is the less the softer they are."""
    model, result, contexts = noisy
    summary = choose_n.summary(result, SETTINGS, 6, 7, 5000)
    assert summary["positions"] == len(contexts) == 448
    assert summary["slope"] == pytest.approx(-1, abs=0.02)
    rng, expected = np.random.default_rng(2), model.p.mean(axis=0)
    kinds = rng.integers(len(model.p), size=(4000, 10))
    distances = np.abs(model.p[kinds].mean(axis=1) - expected).max(axis=2).mean(axis=0)
    assert summary["constant"] == pytest.approx(distances[contexts].mean(), rel=0.03)
    assert summary["draws"] == pytest.approx(summary["crossing"], rel=0.25)
    assert summary["plan"] is None
    spread = (expected * (1 - expected)).max(axis=1)[contexts].mean()
    assert result.largest_variance == pytest.approx(spread, rel=0.05)
    json.dumps(summary)


def test_one_hot_softmaxes_are_as_noisy_as_draws():
    """The published Recurrent GAN was nearly one-hot: its c is that of sampled tokens."""
    model = Finite.random(30.0)
    summary = choose_n.summary(choose_n.latent(model, TEXT_OF_SIX, 7, SETTINGS, (1,)), SETTINGS, 6, 7, 5000)
    windows, _ = pilot_windows(TEXT_OF_SIX, 7, SETTINGS)
    contexts = np.concatenate([np.zeros_like(windows[:, :1]), windows[:, :-1] + 1], axis=1)
    rows = model.p.mean(axis=0)[contexts.ravel()]
    drawn = fit_law(convergence_curve(rows, 10, 3000, np.random.default_rng(1)))
    assert summary["constant"] == pytest.approx(drawn.constant, rel=0.04)


def test_the_running_mean_of_a_latent_model_is_that_of_its_draws():
    """The same curve from the same noise, position by position."""
    settings, model = replace(SETTINGS, max_draws=200, windows=8, positions=16), Finite.random(2.0)
    found = choose_n.latent(model, TEXT_OF_SIX, 7, settings, (1, "model")).curve
    windows, offsets = pilot_windows(TEXT_OF_SIX, 7, settings)
    steps = []
    for row, window in enumerate(windows):
        noise = (keyed_rng(1, "model", walked, row, "noise") for walked in range(2))
        kinds = np.concatenate([rng.integers(len(model.p), size=100) for rng in noise])
        for offset in offsets:
            p = model.p[kinds, window[offset - 1] + 1 if offset else 0]
            means = np.cumsum(p, axis=0)[9::10] / np.arange(10, 201, 10)[:, None]
            steps.append(np.abs(np.diff(means, axis=0, prepend=0)).max(axis=1))
    assert 1 < len(offsets) < 7
    np.testing.assert_allclose(found.step, np.mean(steps, axis=0), rtol=1e-9)


def test_a_table_leaves_the_plan_of_a_latent_model_empty(found, noisy):
    latent = choose_n.summary(noisy[1], SETTINGS, 6, 7, 5000) | {"model": "gan"}
    for order in ([latent, found["explicit"][1]], [found["explicit"][1], latent]):
        table = tables.choose_n([{"model": "lm"} | each for each in order], 2000).set_index("Model")
        assert table.loc["gan", "Plan: cap"] == ""
        assert int(table.loc["lm", "Plan: cap"]) > 0
        assert table.columns[-1] == "Plan: text SE"
        assert float(table.loc["gan", "c"]) == pytest.approx(latent["constant"], abs=1e-4)
