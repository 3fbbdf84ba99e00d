"""Where the bits go, against a token-by-token twin and closed forms."""

from collections import defaultdict
from math import comb, log2

import numpy as np
import pandas as pd
import pytest
from latent import Finite
from measuring import TEST, TRIGRAM, VOCABULARY, Drawing, distributions, task, total, whole

from ganlm import measure_explicit, measure_latent, measure_sampled
from ganlm.bins import MAX_STRETCHES, NO_HIT, QUANTUM, RAREST, first_positions
from ganlm.measurement import Row, tasks
from ganlm.models.uniform import Uniform
from ganlm.profile import gathered, profile
from ganlm.resume import Journal

LONG = np.resize(TEST, 5003)


def frame(rows):
    return pd.DataFrame(rows, columns=Row._fields)


def lines(rows, view, protocol=None):
    """The lines of one view, by bin."""
    found = profile({"model": gathered([frame(rows)])}, 0.95)
    found = found[found["view"] == view]
    return found[found["protocol"] == (protocol or found["protocol"].iloc[0])].set_index("bin")


def gold(model, tokens, window):
    return distributions(model, tokens, window)[np.arange(len(tokens)), tokens]


def bin_of(position, window):
    """The last bin that begins at or before a position, by looking at each."""
    return max(first for first in first_positions(window) if first <= position)


@pytest.mark.parametrize("window", [1, 7, 32, 33, 100, 1000])
def test_positions_fall_into_few_bins_that_cover_the_window(window):
    bins = first_positions(window)
    assert bins[0] == 1
    assert np.all(np.diff(bins) > 0)
    assert bins[-1] <= window
    if window <= 32:
        assert bins.tolist() == list(range(1, window + 1))
    else:
        assert bins[:8].tolist() == list(range(1, 9)), "the beginning is looked at closely"
        assert len(bins) <= 4 * log2(window)
        assert all(high / low <= 1.26 for low, high in zip(bins[7:], [*bins[8:], window + 1], strict=True))


@pytest.mark.parametrize("window", [7, 40, None])
def test_bits_by_bin_are_those_of_the_tokens_one_by_one(window):
    draws = 20
    clipped = [-log2(max(k / draws, 1e-20)) for k in range(draws + 1)]
    twins = {"position": defaultdict(list), "probability": defaultdict(list)}
    for place, p in enumerate(gold(TRIGRAM, TEST, window)):
        plug_in = sum(comb(draws, k) * p**k * (1 - p) ** (draws - k) * clipped[k] for k in range(draws + 1))
        found = (-log2(p), plug_in, (1 - p) ** draws)
        twins["probability"][min(int(-log2(p)), RAREST)].append(found)
        if window:
            twins["position"][bin_of(place % window + 1, window)].append(found)
    rows = measure_explicit.measure(TRIGRAM, task(TEST, window, draws=draws), None, 1)
    for view, twin in twins.items():
        if view == "position" and not window:
            continue
        shown = lines(rows, view)
        assert list(shown.index) == sorted(twin)
        for place, tokens in twin.items():
            bits, plug_in, missed = np.sum(tokens, axis=0)
            line = shown.loc[place]
            assert line["tokens"] == len(tokens)
            assert line["bits"] * len(tokens) == pytest.approx(bits, abs=1e-4)
            assert line["of_text"] == pytest.approx(bits / len(TEST), abs=1e-6)
            assert line["gap"] == pytest.approx((plug_in - bits) / len(TEST), abs=1e-5)
            assert line["never_hit"] == pytest.approx(missed / len(TEST), abs=1e-6)
        assert shown[["token_share", "bits_share"]].sum().tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize("window", [7, 40])
def test_bins_of_both_views_add_up_to_the_same_number_exactly(window):
    rows = measure_explicit.measure(TRIGRAM, task(LONG, window), None, 1)
    found = gathered([frame(rows)])
    for estimator in ("exact", "expected-plug-in", "expected-never-hit"):
        mine = found[found["estimator"] == estimator]
        position, probability = (mine[mine["view"] == view] for view in ("position", "probability"))
        assert position["total"].sum() == probability["total"].sum()
        assert position["tokens"].sum() == probability["tokens"].sum() == len(LONG)
    exact = found.query("estimator == 'exact' and view == 'position'")["total"].sum()
    assert abs(exact - total(rows, "exact")) <= len(LONG) * QUANTUM / 2


def test_a_uniform_model_is_flat():
    model, tokens = Uniform(27), np.resize(np.arange(27, dtype=np.uint8), 5003)
    rows = measure_explicit.measure(model, task(tokens, 100, draws=2000), None, 1)
    position, probability = lines(rows, "position"), lines(rows, "probability")
    np.testing.assert_allclose(position["bits"], log2(27), atol=QUANTUM)
    np.testing.assert_allclose(position[["low", "high"]], log2(27), atol=QUANTUM)
    assert list(probability.index) == [4]
    assert probability.loc[4, "never_hit"] == pytest.approx((26 / 27) ** 2000, abs=QUANTUM)


def test_every_summand_is_a_multiple_of_the_quantum():
    rows = measure_explicit.measure(TRIGRAM, task(TEST, 7), None, 1)
    totals = np.array([row.total for row in rows if row.view != "whole"]) / QUANTUM
    assert len(totals) > 100
    assert np.all(totals == np.rint(totals))


def shard_rows(count, window, strength, measure, **changes):
    settled = task(LONG, window, block=10, **changes)
    parts = [
        part
        for index in range(1, count + 1)
        for part in tasks("model", strength, settled.text, [window], settled.settings, (index, count))
    ]
    return [frame(measure(part)) for part in parts]


@pytest.mark.parametrize("shards", [3, 7])
def test_shards_change_no_digit_although_they_cut_stretches(shards):
    def measure(part):
        return measure_explicit.measure(TRIGRAM, part, None, 1)

    whole_text, parts = (gathered(shard_rows(n, 40, "explicit", measure)) for n in (1, shards))
    assert len(LONG) / 10 > 2 * MAX_STRETCHES
    assert whole_text["block"].nunique() <= MAX_STRETCHES
    assert whole_text.to_csv(index=False) == parts.to_csv(index=False)


def test_the_rows_of_a_long_text_are_as_few_as_those_of_a_short_one():
    sizes = [
        len(gathered([frame(measure_explicit.measure(TRIGRAM, task(np.resize(TEST, n), 40), None, 1))]))
        for n in (64 * 25, 640 * 25)
    ]
    assert sizes[1] <= 1.1 * sizes[0]


def test_hits_are_counted_where_only_draws_are_known(tmp_path):
    """The twin counts the draws that the generator gave."""
    draws, model = 40, Drawing(TRIGRAM)
    wanted = task(TEST, 7, draws=draws, cap=100, estimators=("plug-in", "harmonic"))
    rows = measure_sampled.measure(model, wanted, Journal(tmp_path / "journal", "key"), 1)
    shown = lines(rows, "hits")
    harmonic = total(rows, "harmonic")
    assert (shown["bits"] * shown["tokens"]).sum() == pytest.approx(harmonic, abs=1e-3)
    assert shown["gap"].sum() == pytest.approx((total(rows, "plug-in") - harmonic) / len(TEST), abs=1e-5)
    missed = sum(row.never_hit for row in whole(rows) if row.estimator == "harmonic")
    assert missed > 0
    assert shown.loc[NO_HIT, "tokens"] == missed
    assert shown["never_hit"].sum() == pytest.approx(missed / len(TEST))
    by_hand = sum(1 / j for j in range(1, draws + 1)) / np.log(2)
    assert shown.loc[NO_HIT, "bits"] == pytest.approx(by_hand, abs=QUANTUM)
    position = lines(rows, "position")
    assert (position["bits"] * position["tokens"]).sum() == pytest.approx(harmonic, abs=1e-3)


def test_a_resumed_measurement_has_the_same_profile(tmp_path):
    wanted = task(TEST, 7, block=10, draws=20, estimators=("plug-in", "harmonic"))
    first = measure_sampled.measure(Drawing(TRIGRAM), wanted, Journal(tmp_path / "a", "key"), 1)
    half = task(TEST, 7, range(5), block=10, draws=20, estimators=("plug-in", "harmonic"))
    measure_sampled.measure(Drawing(TRIGRAM), half, Journal(tmp_path / "b", "key"), 1)
    second = measure_sampled.measure(Drawing(TRIGRAM), wanted, Journal(tmp_path / "b", "key"), 1)
    assert gathered([frame(first)]).equals(gathered([frame(second)]))


def test_generators_with_noise_show_the_mean_softmax_with_the_error_of_shared_draws(tmp_path):
    model = Finite.random(1.0)
    tokens = np.resize(TEST, 600)
    rows = measure_latent.measure(model, task(tokens, 5, draws=300), Journal(tmp_path / "journal", "key"), 1)
    shown = lines(rows, "position")
    assert set(shown["estimator"]) == {"mean-softmax"}
    exact = -np.log2(model.gold(tokens, 5).mean(axis=0))
    for place, line in shown.iterrows():
        truth = exact[np.arange(len(tokens)) % 5 == place - 1].mean()
        assert line["low"] < truth < line["high"]
    ungrouped = [row for row in rows if row.group == 0]
    without = lines(ungrouped, "position")
    np.testing.assert_array_equal(without["bits"], shown["bits"])
    assert (shown["high"] - shown["low"]).mean() > (without["high"] - without["low"]).mean()


def test_a_token_without_probability_has_infinite_bits_in_the_last_bin():
    class Never(Uniform):
        def surprisal(self, state, tokens):
            return np.where(tokens == 0, np.inf, 1.0), state

    rows = measure_explicit.measure(Never(VOCABULARY), task(TEST, 7), None, 1)
    shown = lines(rows, "probability")
    assert shown.loc[RAREST, "bits"] == np.inf
    assert shown.loc[RAREST, "tokens"] == (TEST == 0).sum()
    assert shown.loc[1, "bits"] == 1


def test_nothing_is_shown_of_a_model_without_any_of_the_estimators(tmp_path):
    wanted = task(TEST, 7, estimators=("ibs",))
    rows = measure_sampled.measure(Drawing(TRIGRAM), wanted, Journal(tmp_path / "journal", "key"), 1)
    assert profile({"model": gathered([frame(rows)])}, 0.95).empty
