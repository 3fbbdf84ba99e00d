from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measuring import TEST, TRAIN, TRIGRAM, VOCABULARY, distributions, error, pick, task, total

from ganlm.estimators import Harmonic, Ibs, PlugIn, RbIbs
from ganlm.generator import Explicit, GeneratorError
from ganlm.measure_explicit import gold_bits, measure
from ganlm.measurement import tasks
from ganlm.models import ngram
from ganlm.models.ngram import NGram
from ganlm.protocol import Grid, Protocol

WINDOWS = [None, 1, 7, 25, 60, 103, 500]


class Slow(NGram):
    """The same model by the contract's default, one prediction per position."""

    surprisal = Explicit.surprisal


SLOW = Slow.train(TRAIN, VOCABULARY, ngram.Settings(3))


def gold(window, tokens=TEST):
    return distributions(TRIGRAM, tokens, window)[np.arange(len(tokens)), tokens]


def blockwise(values, block=25):
    return [values[start : start + block].sum() for start in range(0, len(values), block)]


@pytest.mark.parametrize("model", [TRIGRAM, SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("window", WINDOWS)
def test_exact_bits_are_those_of_the_predictions(model, window):
    rows = pick(measure(model, task(TEST, window), None, 1), "exact")
    np.testing.assert_allclose([row.total for row in rows], blockwise(-np.log2(gold(window))), rtol=1e-12)
    assert [(row.block, row.tokens) for row in rows] == [(0, 25), (1, 25), (2, 25), (3, 25), (4, 3)]
    assert {(row.draws, row.variance, row.drawn, row.never_hit) for row in rows} == {(0, 0.0, 0.0, 0)}


@pytest.mark.parametrize(("name", "cap"), [("ibs", 30), ("rb-ibs", 500)])
def test_the_expectation_until_a_hit_is_that_of_the_capped_series(name, cap):
    """Σ_{j<M} q^j / j nats; rb-ibs goes on for ten times its draws."""
    expected = [sum((1 - p) ** j / j for j in range(1, cap)) / np.log(2) for p in gold(7)]
    rows = pick(measure(TRIGRAM, task(TEST, 7, draws=50, cap=30), None, 1), f"expected-{name}")
    np.testing.assert_allclose([row.total for row in rows], blockwise(np.array(expected)), atol=1e-6)


@pytest.mark.parametrize("name", ["plug-in", "harmonic"])
@pytest.mark.parametrize("window", [7, None])
def test_the_expectation_is_the_sum_over_all_counts(name, window):
    """Σ_k Binom(k; N, p) f(k), with the binomial coefficients multiplied out by Python."""
    draws = 20
    clipped = [-np.log2(max(k / draws, 1e-20)) for k in range(draws + 1)]
    harmonic = [sum(1 / j for j in range(k + 1, draws + 1)) / np.log(2) for k in range(draws + 1)]
    values = {"plug-in": clipped, "harmonic": harmonic}[name]
    expected = [
        sum(comb(draws, k) * p**k * (1 - p) ** (draws - k) * values[k] for k in range(draws + 1))
        for p in gold(window)
    ]
    rows = pick(measure(TRIGRAM, task(TEST, window, draws=draws), None, 1), f"expected-{name}")
    np.testing.assert_allclose([row.total for row in rows], blockwise(np.array(expected)), atol=1e-6)


def test_real_draws_from_the_predictions_give_the_same():
    """The brute-force twin: N draws at every position, counted, many times over."""
    draws, runs, window, tokens = 40, 150, 7, TEST[:60]
    p = distributions(TRIGRAM, tokens, window)
    rng = np.random.default_rng(3)
    twin = {"plug-in": [], "harmonic": [], "rb-ibs": [], "ibs": []}
    cap = 400
    for _ in range(runs):
        drawn = (rng.random((cap, len(tokens), 1)) > np.cumsum(p, axis=1)).sum(axis=2)
        hits = drawn == tokens
        counts = hits[:draws].sum(axis=0)
        first = np.where(hits.any(axis=0), hits.argmax(axis=0) + 1, 0)
        twin["plug-in"].append(PlugIn(draws).estimate(counts).sum())
        twin["harmonic"].append(Harmonic(draws).estimate(counts).sum())
        twin["ibs"].append(Ibs(cap=cap).estimate(first).sum())
        twin["rb-ibs"].append(RbIbs(draws=draws, cap=cap).estimate(counts, first).sum())
    ours = {name: [] for name in twin}
    for seed in range(runs):
        wanted = task(tokens, window, draws=draws, cap=cap, seed=seed, estimators=tuple(twin))
        rows = measure(TRIGRAM, wanted, None, 1)
        for name, values in ours.items():
            values.append(total(rows, name))
    for name in twin:
        difference = np.mean(ours[name]) - np.mean(twin[name])
        assert abs(difference) < 4 * np.hypot(np.std(ours[name]), np.std(twin[name])) / runs**0.5, name
        ratio = np.std(ours[name]) / np.std(twin[name])
        assert 0.6 < ratio < 1.6, name
        assert np.std(ours[name]) == pytest.approx(error(rows, name), rel=0.3), name


def measured(window, count, **changes):
    whole = task(TEST, window, **changes)
    windows = [whole.protocol.window or "none"]
    return [
        row
        for index in range(1, count + 1)
        for part in tasks("model", "explicit", whole.text, windows, whole.settings, (index, count))
        for row in measure(TRIGRAM, part, None, 1)
    ]


@pytest.mark.parametrize("shards", [2, 3, 8])
@pytest.mark.parametrize(("window", "block"), [(7, 10), (60, 25), (1, 10), (30, 13), (500, 10)])
def test_shards_change_no_digit(window, block, shards):
    changes = {"block": block, "draws_grid": (10, 500), "mixture": 0.01, "characters": 40}
    whole, parts = (measured(window, count, **changes) for count in (1, shards))
    assert len(whole) > 70
    assert sorted(whole) == sorted(parts)


@pytest.mark.parametrize("window", [1, 7, 60])
@pytest.mark.parametrize("characters", [10, 50])
def test_a_subset_of_blocks_is_a_subset_of_the_rows(window, characters):
    """And it holds the blocks on which generators without known probabilities are measured."""
    changes = {"block": 10, "draws_grid": (10,), "characters": 40}
    whole = measured(window, 1, **changes)
    subset = measured(window, 1, explicit_characters=characters, **changes)
    blocks = {row.block for row in subset}
    assert characters // 10 <= len(blocks) <= characters // 10 + 4 < len({row.block for row in whole})
    assert sorted(row for row in whole if row.block in blocks) == sorted(subset)
    text, settings = task(TEST, window, **changes).text, task(TEST, window, **changes).settings
    (sampled,) = tasks("model", "sampled", text, [window], settings, (1, 1))
    assert set(sampled.blocks) <= blocks


@pytest.mark.parametrize("piece", [1, 30, 60])
def test_pieces_of_work_change_no_digit(monkeypatch, piece):
    wanted = task(TEST, 7, block=10, draws_grid=(20,))
    whole = measure(TRIGRAM, wanted, None, 1)
    monkeypatch.setattr(gold_bits, "__defaults__", (piece,))
    assert sorted(measure(TRIGRAM, wanted, None, 1)) == sorted(whole)


def test_a_carried_state_belongs_to_the_first_shard():
    settings = task(TEST, None).settings
    text = task(TEST, None).text
    parts = [list(tasks("m", "explicit", text, ["none", 7], settings, (i, 3))) for i in (1, 2, 3)]
    assert [[part.protocol.name for part in shard] for shard in parts] == [
        ["carried", "window-7"],
        ["window-7"],
        ["window-7"],
    ]
    assert parts[0][0].blocks == [0, 1, 2, 3, 4]


def test_the_mixture_is_the_generator_and_a_little_of_everything():
    rows = pick(measure(TRIGRAM, task(TEST, 7, mixture=0.05), None, 1), "exact", "mixture-0.05")
    mixed = 0.95 * gold(7) + 0.05 / VOCABULARY
    np.testing.assert_allclose([row.total for row in rows], blockwise(-np.log2(mixed)), rtol=1e-12)
    assert pick(measure(TRIGRAM, task(TEST, 7), None, 1), "exact", "mixture-0.05") == []


@pytest.mark.parametrize("window", [7, 25, 60, 500])
def test_brier_is_one_minus_the_squared_distance_to_the_truth(window):
    p = distributions(TRIGRAM, TEST, window)
    scores = 1 - ((p - np.eye(VOCABULARY)[TEST]) ** 2).sum(axis=1)
    rows = pick(measure(TRIGRAM, task(TEST, window), None, 1), "brier")
    np.testing.assert_allclose([row.total for row in rows], blockwise(scores), rtol=1e-12)
    assert {row.unit for row in rows} == {"score"}


def test_brier_needs_whole_distributions_and_so_takes_the_subset():
    wanted = task(TEST, 7, block=10, characters=30)
    rows = pick(measure(TRIGRAM, wanted, None, 1), "brier")
    assert [row.block for row in rows] == sorted(Grid(103, 10).subset(30, 1).tolist())
    assert len(rows) == 3


def test_a_number_of_draws_that_is_listed_twice_is_measured_once():
    rows = measure(TRIGRAM, task(TEST, 7, draws=50, draws_grid=(20, 50, 20)), None, 1)
    for name in ("plug-in", "expected-plug-in"):
        found = sorted((row.draws, row.block) for row in pick(rows, name))
        assert found == [(draws, block) for draws in (20, 50) for block in range(5)]


def test_draws_and_misses_are_counted():
    cap, draws = 30, 5
    rows = measure(TRIGRAM, task(TEST, 7, draws=draws, cap=cap), None, 1)
    p = gold(7)
    for row in pick(rows, "harmonic") + pick(rows, "plug-in"):
        assert row.drawn == draws * row.tokens
    estimator = task(TEST, 7, draws=draws, cap=cap).estimator("rb-ibs")
    for name, expected in [("ibs", Ibs(cap=cap)), ("rb-ibs", estimator)]:
        drawn = sum(row.drawn for row in pick(rows, name))
        assert drawn == pytest.approx(expected.expected_draws(p).sum(), rel=0.4)
    missed = [sum(row.never_hit for row in pick(rows, name)) for name in ("harmonic", "ibs", "rb-ibs")]
    expected = [((1 - p) ** n).sum() for n in (draws, cap, estimator.cap)]
    assert all(abs(m - e) < 4 * e**0.5 + 1 for m, e in zip(missed, expected, strict=True))
    assert missed[0] > missed[1] >= missed[2]


@given(st.integers(0, 2**32), st.sampled_from(["seed", "model", "protocol"]))
@settings(max_examples=20, deadline=None)
def test_random_numbers_depend_on_seed_model_and_protocol(seed, what):
    one = task(TEST, 200, seed=seed, estimators=("harmonic",))
    changes = {
        "seed": {"settings": replace(one.settings, seed=seed + 1)},
        "model": {"model": "other"},
        "protocol": {"protocol": Protocol(201)},
    }
    other = replace(one, **changes[what])
    first, second = (measure(TRIGRAM, each, None, 1) for each in (one, other))
    assert total(first, "exact") == total(second, "exact")
    assert total(first, "harmonic") != total(second, "harmonic")
    assert first == measure(TRIGRAM, one, None, 1)


class Table(Explicit):
    """Predicts the same numbers everywhere, whatever they are."""

    vocabulary = VOCABULARY

    def __init__(self, p):
        self.p = np.asarray(p)

    def start(self, rows):
        return rows

    def predict(self, state):
        return np.tile(self.p, (state, 1))

    def feed(self, state, tokens):
        assert tokens.dtype == np.int64
        return state


@pytest.mark.parametrize(
    ("p", "said"),
    [
        ([np.nan] * 6, "no distributions"),
        ([2, -1, 0, 0, 0, 0], "no distributions"),
        ([1.0] * 6, "no distributions"),
        ([1 / 5] * 5, r"shape \(\d+, 5\), not \(\d+, 6\)"),
    ],
)
@pytest.mark.parametrize("window", [7, None])
def test_predictions_that_are_no_distributions_are_refused(p, said, window):
    with pytest.raises(GeneratorError, match=said):
        measure(Table(p), task(TEST, window), None, 1)


def test_own_scores_that_are_no_bits_are_refused():
    class Wrong(Table):
        def __init__(self, bits):
            self.bits = bits

        def surprisal(self, state, tokens):
            return self.bits(tokens), state

    for bits, said in [
        (lambda tokens: np.full(tokens.shape, np.nan), "NaN"),
        (lambda tokens: np.full(tokens.shape, -0.1), "above 1"),
        (lambda tokens: np.ones(tokens.size), "shape"),
    ]:
        with pytest.raises(GeneratorError, match=said):
            measure(Wrong(bits), task(TEST, 7, estimators=()), None, 1)


def test_single_precision_may_round_a_certainty_above_one():
    sure = np.float32([1 + 1e-6, 0, 0, 0, 0, 0])
    rows = measure(Table(sure), task(np.zeros(30, np.uint8), 7), None, 1)
    assert {total(rows, name) for name in ("exact", "plug-in", "harmonic", "ibs")} == {0.0}


def test_a_token_without_probability_has_infinite_exact_bits_and_finite_estimates():
    rows = measure(Table([0, 1, 0, 0, 0, 0]), task(np.zeros(10, np.uint8), 5, draws=100, cap=200), None, 1)
    assert total(rows, "exact") == np.inf
    assert total(rows, "plug-in") == pytest.approx(10 * 66.4386, abs=0.01)
    assert total(rows, "ibs") == pytest.approx(10 * sum(1 / j for j in range(1, 200)) / np.log(2))
    assert sum(row.never_hit for row in pick(rows, "rb-ibs")) == 10
