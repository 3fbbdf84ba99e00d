"""Estimators against closed forms, exhaustive enumeration, real draws, PyIBS and published numbers."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyibs import IBS
from scipy.special import spence
from scipy.stats import geom

from ganlm import binomial
from ganlm.estimators import (
    ESTIMATORS,
    LN2,
    NEVER_HIT,
    Brier,
    Harmonic,
    Ibs,
    MeanSoftmax,
    PlugIn,
    RbIbs,
    Smoothed,
    build,
    first_hits,
    gold_counts,
    harmonic_number,
    inverse_squares,
    matching_pairs,
    smoothed_generator,
    surprisal,
)

PROBABILITIES = np.array([1e-4, 1e-3, 0.02, 0.3, 0.5, 0.9, 0.999])
seeds = st.integers(0, 2**32 - 1)
log_probabilities = st.floats(-3.0, 0.0)
deterministic = settings(derandomize=True, deadline=None, max_examples=40)


def within_four_standard_errors(samples, mean, variance):
    return abs(samples.mean() - mean) <= 4 * math.sqrt(variance / samples.size) + 1e-9


def truncated_series(p, terms):
    """Σ_{j<=terms} (1-p)^j / j in bits."""
    j = np.arange(1, terms + 1)
    return math.fsum((1 - p) ** j / j) / LN2


def sampled(estimator, p, positions, rng):
    """Estimates, and their estimated variances, of a model with known p."""
    p = np.full(positions, p)
    draws = {}
    if "counts" in estimator.inputs:
        draws["counts"] = gold_counts(p, estimator.draws, rng)
    if "first_hits" in estimator.inputs:
        after = getattr(estimator, "draws", 0)
        draws["first_hits"] = first_hits(p, estimator.cap, rng, after=after)
    return estimator.estimate(**draws), estimator.estimated_variance(**draws)


# Expectations under the binomial


def test_direct_expectation_equals_the_rational_sum():
    values = PlugIn(30).values
    for p in (Fraction(1, 1000), Fraction(1, 3), Fraction(9, 10)):
        weights = [math.comb(30, k) * p**k * (1 - p) ** (30 - k) for k in range(31)]
        exact = sum(w * Fraction(v) for w, v in zip(weights, values, strict=True))
        assert binomial.expectation(values, float(p)) == pytest.approx(float(exact), rel=1e-12)


def test_windowed_sum_leaves_out_nothing_that_matters():
    draws, p = 3000, np.array([1e-6, 1e-3, 0.2, 0.5, 0.97])
    values = PlugIn(draws).values
    k = np.arange(draws + 1)
    log_binomial = [math.lgamma(draws + 1) - math.lgamma(i + 1) - math.lgamma(draws - i + 1) for i in k]
    pmf = np.exp(log_binomial + k * np.log(p)[:, None] + (draws - k) * np.log1p(-p)[:, None])
    np.testing.assert_allclose(binomial.expectation(values, p), pmf @ values, rtol=1e-9)


@pytest.mark.parametrize("draws", [1, 2, 7, 100, 2000])
@pytest.mark.parametrize("kind", [PlugIn, Harmonic])
def test_table_is_within_its_tolerance_of_the_sum(draws, kind):
    estimator = kind(draws)
    rng = np.random.default_rng(draws)
    p = np.concatenate([10 ** rng.uniform(-9, 0, 200), 1 - 10 ** rng.uniform(-9, 0, 100), [0, 1]])
    direct = binomial.expectation(estimator.values, p)
    assert np.abs(estimator.expectation(p) - direct).max() < 1e-9


@deterministic
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=60), st.floats(0, 1))
def test_table_of_any_function_of_the_count(values, p):
    assert abs(binomial.tabulate_expectation(values)(p) - binomial.expectation(values, p)) < 1e-9


def test_table_keeps_a_looser_promise_with_fewer_pieces():
    values = PlugIn(500).values
    p = np.linspace(0, 1, 2003)
    loose = binomial.tabulate_expectation(values, tolerance=1e-4)
    error = np.abs(loose(p) - binomial.expectation(values, p)).max()
    assert error < 1e-4
    assert loose.spline.x.size < binomial.tabulate_expectation(values).spline.x.size / 10


# Closed forms


@pytest.mark.parametrize("draws", [1, 5, 100, 2000])
def test_harmonic_expectation_is_the_truncated_series(draws):
    direct = binomial.expectation(Harmonic(draws).values, PROBABILITIES)
    series = [truncated_series(p, draws) for p in PROBABILITIES]
    np.testing.assert_allclose(direct, series, rtol=1e-12, atol=1e-12)


def test_harmonic_numbers_and_inverse_squares():
    j = np.arange(1, 51)
    np.testing.assert_allclose(harmonic_number(50), math.fsum(1 / j), rtol=1e-14)
    np.testing.assert_allclose(inverse_squares(50), math.fsum(1 / j**2), rtol=1e-13)
    assert harmonic_number(0) == inverse_squares(0) == 0


@pytest.mark.parametrize("cap", [1, 2, 10, 2000])
def test_capped_ibs_moments_by_enumerating_the_first_hit(cap):
    estimator = Ibs(cap=cap)
    outcomes = np.append(np.arange(1, cap + 1), NEVER_HIT)
    bits = estimator.estimate(outcomes)
    for p in PROBABILITIES:
        weights = np.append(geom.pmf(outcomes[:-1], p), (1 - p) ** cap)
        mean = weights @ bits
        assert mean == pytest.approx(truncated_series(p, cap - 1), rel=1e-12, abs=1e-14)
        assert estimator.expectation(p) == pytest.approx(mean, abs=2e-9)
        assert estimator.bias(p) == pytest.approx(mean - surprisal(p), abs=2e-9)
        assert estimator.variance(p) == pytest.approx(weights @ (bits - mean) ** 2, abs=1e-7)
        draws = weights @ np.where(outcomes == NEVER_HIT, cap, outcomes)
        assert estimator.expected_draws(p) == pytest.approx(draws, rel=1e-10)


@pytest.mark.parametrize(("draws", "cap"), [(1, 40), (3, 4), (3, 40), (50, 3000), (20, None)])
def test_rb_ibs_moments_by_enumerating_counts_and_late_hits(draws, cap):
    estimator = RbIbs(draws=draws, cap=cap)
    last = cap or 5000
    counts = np.concatenate([np.arange(1, draws + 1), np.zeros(last - draws + (cap is not None), int)])
    late = np.arange(draws + 1, last + 1)
    hits = np.concatenate([np.zeros(draws, int), late, [NEVER_HIT] * (cap is not None)])
    bits = estimator.estimate(counts, hits)
    for p in (0.02, 0.3, 0.9):
        early = [math.comb(draws, k) * p**k * (1 - p) ** (draws - k) for k in range(1, draws + 1)]
        never = [(1 - p) ** last] * (cap is not None)
        weights = np.concatenate([early, geom.pmf(late, p), never])
        mean = weights @ bits
        used = np.where(counts > 0, draws, np.where(hits == NEVER_HIT, last, hits))
        assert estimator.expectation(p) == pytest.approx(mean, abs=2e-9)
        assert estimator.variance(p) == pytest.approx(weights @ (bits - mean) ** 2, abs=1e-8)
        assert estimator.expected_draws(p) == pytest.approx(weights @ used, rel=1e-10)
        if cap is None:
            variance = weights @ estimator.estimated_variance(counts, hits)
            assert variance == pytest.approx(estimator.variance(p), abs=1e-8)
            assert estimator.expectation(p) == surprisal(p)


def test_rb_ibs_contains_ibs_and_harmonic():
    p = PROBABILITIES
    one = RbIbs(draws=1, cap=500)
    np.testing.assert_allclose(one.variance(p), Ibs(cap=500).variance(p), atol=1e-8)
    np.testing.assert_allclose(one.expected_draws(p), Ibs(cap=500).expected_draws(p), rtol=1e-12)
    fixed = RbIbs(draws=100, cap=101)
    np.testing.assert_allclose(fixed.expectation(p), Harmonic(100).expectation(p), atol=2e-9)
    np.testing.assert_allclose(fixed.variance(p), Harmonic(100).variance(p), atol=1e-8)


def test_uncapped_ibs_variance_is_the_dilogarithm():
    p = np.array([1e-9, 0.01, 0.5, 1.0])
    np.testing.assert_allclose(Ibs().variance(p), spence(p) / LN2**2)
    assert Ibs().variance(0.0) == pytest.approx(math.pi**2 / 6 / LN2**2)
    np.testing.assert_allclose(Ibs(cap=10**5).variance(0.01), Ibs().variance(0.01), atol=1e-8)


def test_harmonic_estimated_variance_is_never_too_small_on_average():
    estimator = Harmonic(200)
    p = 10 ** np.linspace(-5, 0, 101)
    mean = binomial.expectation(estimator.estimated_variance(np.arange(201)), p)
    assert (mean >= estimator.variance(p) - 1e-9).all()
    often_hit = p > 0.1
    np.testing.assert_allclose(mean[often_hit], estimator.variance(p[often_hit]), atol=1e-6)


def test_bias_of_the_published_estimator_at_2000_draws():
    p = [0.1, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0001]
    published = [0.003, 0.037, 0.08, 1.2, 7.6, 20, 43]
    rounded = [float(f"{b:.2g}") for b in PlugIn(2000).bias(p)]
    assert rounded == pytest.approx(published, rel=0.03, abs=3e-4)
    assert PlugIn(2000).estimate(0) == pytest.approx(66.4386, abs=1e-4)


def test_one_sided_biases_are_one_sided():
    p = 10 ** np.linspace(-12, 0, 1001)
    for estimator in (Harmonic(500), Ibs(cap=500), RbIbs(draws=20, cap=500)):
        assert (estimator.bias(p) <= 0).all()
    assert not (PlugIn(500).bias(p) <= 0).all()


# Draws


@deterministic
@given(log_probabilities, seeds)
def test_estimates_have_the_stated_expectation(log_p, seed):
    p = 10**log_p
    rng = np.random.default_rng(seed)
    for estimator in (
        PlugIn(50),
        Smoothed(50, alphabet_size=27),
        Harmonic(50),
        Ibs(cap=200),
        Ibs(),
        RbIbs(draws=8, cap=200),
        RbIbs(draws=8),
    ):
        bits, variances = sampled(estimator, p, 4000, rng)
        mean, variance = estimator.expectation(p), estimator.variance(p)
        assert within_four_standard_errors(bits, mean, variance), estimator
        if estimator.inputs != ("counts",):
            floor = variance - 4 * variances.std() / math.sqrt(variances.size)
            assert variances.mean() >= floor - 1e-9, estimator


def test_uncapped_estimators_are_unbiased_over_a_whole_text():
    rng = np.random.default_rng(5)
    p = rng.beta(0.5, 0.8, 200_000).clip(1e-6)
    counts, hits = gold_counts(p, 16, rng), first_hits(p, None, rng)
    late = first_hits(p, None, rng, after=16)
    truth = surprisal(p).mean()
    for estimator, draws in (
        (Ibs(), {"first_hits": hits}),
        (RbIbs(draws=16), {"counts": counts, "first_hits": late}),
    ):
        error = estimator.estimate(**draws).mean() - truth
        assert abs(error) < 4 * math.sqrt(estimator.variance(p).mean() / p.size)


def test_really_drawing_agrees_with_the_binomial_shortcut():
    rng = np.random.default_rng(11)
    rows, draws = rng.dirichlet(np.full(27, 0.3), 1500), 200
    gold = np.array([rng.choice(27, p=row) for row in rows])
    p = rows[np.arange(len(rows)), gold]
    edges = rows.cumsum(axis=1)[:, None, :-1]
    tokens = (rng.random((len(rows), draws, 1)) > edges).sum(axis=2)
    hits = tokens == gold[:, None]
    first = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, NEVER_HIT)
    for estimator, really in (
        (PlugIn(draws), {"counts": hits.sum(axis=1)}),
        (Smoothed(draws, 27), {"counts": hits.sum(axis=1)}),
        (Harmonic(draws), {"counts": hits.sum(axis=1)}),
        (Ibs(cap=draws), {"first_hits": first}),
        (RbIbs(draws=20, cap=draws), {"counts": hits[:, :20].sum(axis=1), "first_hits": first}),
    ):
        bits = estimator.estimate(**really)
        assert within_four_standard_errors(
            bits, estimator.expectation(p).mean(), estimator.variance(p).mean()
        ), estimator
    counts = (tokens[:, :, None] == np.arange(27)).sum(axis=1)
    scores = Brier(draws).estimate(hits.sum(axis=1), matching_pairs(counts))
    squares, cubes = (rows**2).sum(axis=1), (rows**3).sum(axis=1)
    assert within_four_standard_errors(
        scores,
        Brier(draws).expectation(p, squares).mean(),
        Brier(draws).variance(p, squares, cubes).mean(),
    )


def test_first_hits_follow_the_geometric_law_and_stop_at_the_cap():
    rng = np.random.default_rng(3)
    hits = first_hits(np.full(100_000, 0.1), 12, rng)
    for k in range(1, 13):
        share, expected = (hits == k).mean(), geom.pmf(k, 0.1)
        assert abs(share - expected) < 4 * math.sqrt(expected / hits.size)
    assert (hits == NEVER_HIT).mean() == pytest.approx(0.9**12, abs=0.006)
    late = first_hits(np.full(1000, 0.1), 12, rng, after=10)
    assert set(late) == {NEVER_HIT, 11, 12}
    assert list(first_hits([0.0, 1.0], None, rng)) == [NEVER_HIT, 1]


def test_values_and_variances_agree_with_pyibs():
    p = np.array([0.9, 0.4, 0.1, 0.03, 0.01])
    draws = np.zeros(p.size, dtype=int)

    def simulate(_, trials, rng):
        trials = np.asarray(trials, dtype=int).ravel()
        np.add.at(draws, trials, 1)
        return (rng.random(trials.size) < p[trials]).astype(int)

    oracle = IBS(simulate, np.ones(p.size, dtype=int), vectorized=False, random_seed=2)
    for _ in range(20):
        draws[:] = 0
        result = oracle(None, num_reps=1, additional_output="full")
        np.testing.assert_allclose(Ibs().estimate(draws), result.neg_logl_trials / LN2, atol=1e-12)
        np.testing.assert_allclose(
            Ibs().estimated_variance(draws), result.neg_logl_var_trials / LN2**2, atol=1e-12
        )


# Other estimators


def test_brier_mean_and_variance_by_enumerating_all_draws():
    row, draws, gold = np.array([0.5, 0.3, 0.2]), 4, 1
    outcomes = np.array(list(product(range(3), repeat=draws)))
    weights = row[outcomes].prod(axis=1)
    counts = (outcomes[:, :, None] == np.arange(3)).sum(axis=1)
    scores = Brier(draws).estimate(counts[:, gold], matching_pairs(counts))
    mean = weights @ scores
    squares, cubes = (row**2).sum(), (row**3).sum()
    assert mean == pytest.approx(1 - ((row - np.eye(3)[gold]) ** 2).sum(), abs=1e-12)
    assert Brier(draws).expectation(row[gold], squares) == pytest.approx(mean, abs=1e-12)
    variance = weights @ (scores - mean) ** 2
    assert Brier(draws).variance(row[gold], squares, cubes) == pytest.approx(variance, abs=1e-12)


def test_brier_of_two_draws_is_the_pair_formula():
    for first, second in product(range(3), repeat=2):
        counts = np.bincount([first, second], minlength=3)
        expected = (first == 1) + (second == 1) - (first == second)
        assert Brier(2).estimate(counts[1], matching_pairs(counts)) == expected


def test_mean_softmax_bias_variance_and_jackknife_on_soft_softmaxes():
    rng = np.random.default_rng(8)
    draws, replicates, a, b = 20, 60_000, 4.0, 16.0
    p, spread = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    probabilities = rng.beta(a, b, (draws, replicates))
    estimator = MeanSoftmax(draws)
    bits = estimator.estimate(probabilities.mean(axis=0))
    error = bits.mean() - surprisal(p)
    standard_error = bits.std() / math.sqrt(replicates)
    assert error > 8 * standard_error
    assert error == pytest.approx(estimator.bias(p, spread), abs=4 * standard_error + 2e-4)
    assert bits.var() == pytest.approx(estimator.variance(p, spread), rel=0.05)
    corrected = estimator.jackknife(probabilities)
    assert abs(corrected.mean() - surprisal(p)) < 4 * standard_error
    estimated = estimator.estimated_variance(probabilities.mean(axis=0), probabilities.var(axis=0, ddof=1))
    assert estimated.mean() == pytest.approx(estimator.variance(p, spread), rel=0.05)


def test_mean_of_one_hots_is_the_plug_in_and_has_its_smooth_bias():
    counts, draws = np.arange(11), 10
    np.testing.assert_array_equal(MeanSoftmax(draws).estimate(counts / draws), PlugIn(draws).estimate(counts))
    p = np.array([0.1, 0.3, 0.8])
    smooth = MeanSoftmax(20_000).bias(p, p * (1 - p))
    np.testing.assert_allclose(PlugIn(20_000).bias(p), smooth, rtol=2e-3)


def test_smoothed_generator_has_the_probability_of_the_mixture():
    rng = np.random.default_rng(4)
    draws, weight = 200_000, 0.3
    from_uniform = rng.random(draws) < weight
    hits = np.where(from_uniform, rng.integers(0, 27, draws) == 0, rng.random(draws) < 0.02)
    p = smoothed_generator(0.02, weight, 27)
    assert within_four_standard_errors(hits, p, p * (1 - p))
    worst = smoothed_generator(0.0, 1e-3, 27)
    assert Ibs().expected_draws(worst) == pytest.approx(27e3)


# Edges and configuration


def test_impossible_and_certain_tokens():
    ends = np.array([0.0, 1.0])
    np.testing.assert_allclose(PlugIn(9).expectation(ends), [-math.log2(1e-20), 0], atol=1e-9)
    for estimator in (Harmonic(9), Ibs(cap=10), RbIbs(draws=3, cap=10)):
        np.testing.assert_allclose(estimator.expectation(ends), [harmonic_number(9) / LN2, 0], atol=1e-9)
        np.testing.assert_array_equal(estimator.bias(ends)[0], -np.inf)
        np.testing.assert_allclose(estimator.variance(ends), 0, atol=1e-8)
    for estimator in (Ibs(), RbIbs(draws=3)):
        np.testing.assert_array_equal(estimator.expectation(ends), [np.inf, 0])
        np.testing.assert_array_equal(estimator.bias(ends), 0)
        assert estimator.expected_draws(ends)[0] == np.inf
    np.testing.assert_array_equal(Ibs(cap=10).expected_draws(ends), [10, 1])
    np.testing.assert_array_equal(RbIbs(draws=3, cap=10).expected_draws(ends), [10, 3])


def test_extreme_counts():
    assert Harmonic(9).estimate(9) == PlugIn(9).estimate(9) == Ibs(cap=4).estimate(1) == 0
    assert Harmonic(9).estimate(0) == pytest.approx(harmonic_number(9) / LN2)
    assert Ibs(cap=4).estimate(NEVER_HIT) == Ibs(cap=4).estimate(4) == pytest.approx(11 / 6 / LN2)
    assert Smoothed(10, alphabet_size=2, pseudocount=1).estimate(0) == pytest.approx(math.log2(12))


def test_one_set_of_settings_builds_every_estimator():
    built = [build(name, draws=100, cap=2000, alphabet_size=27) for name in ESTIMATORS]
    assert [e.name for e in built] == list(ESTIMATORS)
    assert build("ibs", draws=100, cap=2000) == Ibs(cap=2000)
    assert build("smoothed", draws=5, alphabet_size=27, pseudocount=1.0).pseudocount == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: build("kt"), "unknown estimator 'kt': choose from plug-in, smoothed"),
        (lambda: build("smoothed", draws=5), "'smoothed' needs the setting alphabet_size"),
        (lambda: PlugIn(0), "draws must be at least 1"),
        (lambda: Brier(1), "at least 2 draws"),
        (lambda: RbIbs(draws=10, cap=10), "cap above its 10 draws"),
        (lambda: Harmonic(10).estimate([3, 11]), "between 0 and the 10 draws, not 3 to 11"),
        (lambda: Ibs().estimate([3, NEVER_HIT]), "never hit"),
        (lambda: Ibs(cap=10).estimate([11]), "between 1 and the cap of 10"),
        (lambda: RbIbs(draws=10).estimate([0], [4]), "first hit among them"),
        (lambda: MeanSoftmax(3).jackknife(np.ones((2, 5))), "all of 3 >= 2 draws"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
