"""Sample sizes against published numbers, stored draws and simulation."""

import math

import numpy as np
import pytest

from ganlm.sample_size import (
    ConvergenceCurve,
    anytime_draws,
    bernstein_draws,
    chernoff_draws,
    chosen_n,
    convergence_curve,
    curve_from_increments,
    dkw_draws,
    empirical_bernstein_draws,
    first_below,
    fit_law,
    hoeffding_draws,
    hoeffding_gamma,
    multinomial_increments,
    normal_draws,
    weissman_draws,
)

GAMMA, EPSILON = 1e-3, 1e-2


def text_like(rng, positions):
    """Rows of a model on 27 symbols."""
    return rng.dirichlet(np.full(27, 0.15), positions)


# Bounds


@pytest.mark.parametrize(
    ("draws", "printed"),
    [
        (hoeffding_draws(GAMMA, EPSILON, 27), "4.30e6"),
        (hoeffding_draws(GAMMA, EPSILON, 50_000), "8.06e6"),
        (hoeffding_draws(GAMMA, EPSILON), "2.65e6"),
        (normal_draws(GAMMA, EPSILON), "1.66e6"),
        (dkw_draws(GAMMA, EPSILON), "1.06e7"),
        (weissman_draws(GAMMA, EPSILON, 27), "1.17e7"),
        (anytime_draws(GAMMA, EPSILON, 27), "4.95e6"),
        (anytime_draws(GAMMA, EPSILON, 50_000), "8.85e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.5, 27), "4.30e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.25, 27), "3.23e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.1, 27), "1.55e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.05, 27), "8.2e5"),
        (bernstein_draws(GAMMA, EPSILON, 0.01, 27), "1.76e5"),
        (bernstein_draws(GAMMA, EPSILON, 0.5, 50_000), "8.07e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.1, 50_000), "2.91e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.05, 50_000), "1.54e6"),
        (bernstein_draws(GAMMA, EPSILON, 0.01, 50_000), "3.30e5"),
        (chernoff_draws(GAMMA, EPSILON, 0.5, 27), "4.30e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.25, 27), "3.23e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.1, 27), "1.55e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.05, 27), "8.2e5"),
        (chernoff_draws(GAMMA, EPSILON, 0.01, 27), "1.76e5"),
        (chernoff_draws(GAMMA, EPSILON, 0.001, 27), "2.2e4"),
        (chernoff_draws(GAMMA, EPSILON, 0.5, 50_000), "8.06e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.25, 50_000), "6.05e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.1, 50_000), "2.91e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.05, 50_000), "1.54e6"),
        (chernoff_draws(GAMMA, EPSILON, 0.001, 50_000), "4.2e4"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.25, 27), "4.69e6"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.0475, 27), "9.3e5"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.0099, 27), "2.3e5"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.001, 27), "5.3e4"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.25, 50_000), "8.48e6"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.0475, 50_000), "1.67e6"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.0099, 50_000), "4.1e5"),
        (empirical_bernstein_draws(GAMMA, EPSILON, 0.001, 50_000), "9.6e4"),
    ],
)
def test_bounds_reproduce_the_reference_table(draws, printed):
    mantissa, exponent = printed.split("e")
    decimals = len(mantissa.partition(".")[2])
    assert f"{draws / 10 ** int(exponent):.{decimals}f}" == mantissa


@pytest.mark.parametrize("p", [0.25, 0.1, 0.05, 0.01])
def test_bernstein_is_a_little_looser_than_chernoff(p):
    chernoff = chernoff_draws(GAMMA, EPSILON, p, 27)
    assert chernoff < bernstein_draws(GAMMA, EPSILON, p, 27) < 1.01 * chernoff


def test_weissman_of_a_large_alphabet_does_not_overflow():
    expected = (50_000 * math.log(2) + math.log(100)) / (2 * GAMMA**2)
    assert weissman_draws(GAMMA, EPSILON, 50_000) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.02])
def test_bounds_bound(p):
    """At the promised N, one token misses by γ less often than ε."""
    gamma, epsilon = 0.02, 0.05
    rng = np.random.default_rng(1)
    for draws in (
        hoeffding_draws(gamma, epsilon),
        bernstein_draws(gamma, epsilon, p),
        chernoff_draws(gamma, epsilon, p),
        empirical_bernstein_draws(gamma, epsilon, p * (1 - p)),
        anytime_draws(gamma, epsilon),
        dkw_draws(gamma, epsilon),
    ):
        misses = np.abs(rng.binomial(draws, p, 20_000) / draws - p) >= gamma
        assert misses.mean() < epsilon
    exact = normal_draws(gamma, epsilon, 0.5)
    misses = np.abs(rng.binomial(exact, 0.5, 100_000) / exact - 0.5) >= gamma
    assert misses.mean() == pytest.approx(epsilon, abs=0.005)


# The convergence rule


def test_streamed_curve_equals_the_one_from_stored_draws():
    rng = np.random.default_rng(2)
    rows = text_like(rng, 7)
    alpha, n_max = 5, 60
    increments = [rng.multinomial(alpha, rows) for _ in range(n_max // alpha)]
    curve = curve_from_increments(iter(increments), alpha, n_max, rows)
    n = np.arange(alpha, n_max + 1, alpha)
    running = np.cumsum(increments, axis=0) / n[:, None, None]
    moved = np.abs(np.diff(running, axis=0, prepend=0)).max(axis=2).mean(axis=1)
    np.testing.assert_allclose(curve.step, moved, rtol=1e-12)
    np.testing.assert_allclose(curve.error, np.abs(running - rows).max(axis=2).mean(axis=1))
    np.testing.assert_array_equal(curve.draws, n)
    assert curve_from_increments(increments, alpha, n_max).error is None


def test_curve_of_a_text_like_model_obeys_the_published_law():
    rng = np.random.default_rng(3)
    rows = text_like(rng, 1500)
    curve = convergence_curve(rows, alpha=10, n_max=3000, rng=rng)
    law = fit_law(curve)
    assert law.slope == pytest.approx(-1, abs=0.02)
    mean_of_ten = rng.multinomial(10, rows) / 10
    assert law.constant == pytest.approx(np.abs(mean_of_ten - rows).max(axis=1).mean(), rel=0.03)
    assert chosen_n(curve, 1e-3) == pytest.approx(law.crossing(1e-3), rel=0.03)
    assert curve.error[curve.draws == 1600] > 5e-3


def test_true_error_falls_with_the_square_root():
    rng = np.random.default_rng(4)
    rows = text_like(rng, 1000)
    curve = convergence_curve(rows, alpha=10, n_max=1600, rng=rng)
    ratio = curve.error[curve.draws == 400] / curve.error[curve.draws == 1600]
    assert ratio == pytest.approx(2, rel=0.05)


def test_law_of_the_published_curves():
    draws = np.array([100, 200, 500, 1000, 1500, 1600, 2000, 3000])
    seqgan = [0.016399, 0.0080553, 0.0031956, 0.0015781, 0.0010551, 0.00099372, 0.00079168, 0.00052710]
    recurrent = [0.017044, 0.0082589, 0.0032297, 0.0016007, 0.0010761, 0.00098604, 0.00079875, 0.00053270]
    for steps, constant in ((seqgan, 0.1585), (recurrent, 0.1611)):
        law = fit_law(ConvergenceCurve(10, draws, np.array(steps), None, 1))
        assert law.slope == pytest.approx(-1, abs=0.02)
        assert law.constant == pytest.approx(constant, abs=0.003)


def test_a_dip_below_the_threshold_is_not_convergence():
    steps = np.array([3, 2, 0.9, 1, 0.9, 0.8]) * 1e-3
    curve = ConvergenceCurve(10, np.arange(10, 70, 10), steps, None, 1)
    assert first_below(curve, 1e-3) == 30
    assert chosen_n(curve, 1e-3) == 50
    assert chosen_n(curve, 1e-4) is first_below(curve, 1e-4) is None
    assert chosen_n(curve, 1) == 10


def test_single_precision_rows_are_accepted():
    rows = np.full((3, 27), 1 / 27, dtype=np.float32)
    increment = next(multinomial_increments(rows, 10, np.random.default_rng(0)))
    assert (increment.sum(axis=1) == 10).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: curve_from_increments([np.ones((2, 3))], 10, 50), "need 5 increments, not 1"),
        (lambda: fit_law(ConvergenceCurve(10, np.array([10]), np.ones(1), None, 1)), "two points"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("alphabet", [1, 27, 50_000])
def test_the_accuracy_of_n_draws_is_the_one_that_asks_for_them(alphabet):
    for draws in (10, 2000, 4_297_000):
        gamma = hoeffding_gamma(draws, EPSILON, alphabet)
        assert hoeffding_draws(gamma * (1 + 1e-9), EPSILON, alphabet) == draws
        assert hoeffding_draws(gamma * (1 - 1e-9), EPSILON, alphabet) == draws + 1


def test_2000_draws_guarantee_a_twentieth():
    assert hoeffding_gamma(2000, EPSILON, 27) == pytest.approx(0.0464, abs=5e-5)
