"""Plans against the exact estimators, brute-force alternatives, and runs that carry them out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ganlm.estimators import NEVER_HIT, Ibs, first_hits, smoothed_generator, surprisal
from ganlm.planner import pilot_from_first_hits, pilot_from_probabilities, plan


def text_like(rng, positions, concentration=0.15):
    """Probabilities of the true symbols under a calibrated model on 27 symbols."""
    rows = rng.dirichlet(np.full(27, concentration), positions)
    gold = (rng.random((positions, 1)) > rows.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return rows[np.arange(positions), gold]


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.floats(0.004, 0.2), st.sampled_from([1000, 10_000, 100_000]), st.integers(0, 1000))
def test_no_cheaper_cap_reaches_the_target(target, positions, seed):
    p = text_like(np.random.default_rng(seed), 200)
    found = plan(pilot_from_probabilities(p, 300), target, positions)
    for cap in (2, 3, 5, 10, 30, 100, 300, found.cap):
        estimator = Ibs(cap=cap)
        room = target + estimator.bias(p).mean()
        if room <= 0:
            continue
        assert found.feasible
        j = np.arange(1, cap)
        variance = (((1 - p[:, None]) ** j) / j**2).sum(axis=1).mean() / math.log(2) ** 2
        runs = max(1, math.ceil(variance / positions * (1.959964 / room) ** 2 - 1e-6))
        cost = runs * estimator.expected_draws(p).mean()
        assert found.draws_per_token <= cost * (1 + 1e-6)
        if cap == found.cap:
            assert found.draws_per_token == pytest.approx(cost)
            assert found.expected_bias_bits == pytest.approx(estimator.bias(p).mean(), abs=1e-8)
            assert found.monte_carlo_se >= math.sqrt(estimator.variance(p).mean() / runs / positions)
            assert found.half_width <= target * (1 + 1e-9)


def test_plans_carried_out_keep_their_promises():
    rng = np.random.default_rng(6)
    p = text_like(rng, 20_000)
    target, errors, spent = 0.02, [], []
    for _ in range(200):
        pilot = pilot_from_first_hits(first_hits(rng.choice(p, 2000), 2000, rng), 2000)
        found = plan(pilot, target, p.size)
        runs = [first_hits(p, found.cap, rng) for _ in range(found.runs)]
        bits = np.mean([Ibs(cap=found.cap).estimate(hits) for hits in runs], axis=0)
        errors.append(bits.mean() - surprisal(p).mean())
        draws = sum(np.where(hits == NEVER_HIT, found.cap, hits).mean() for hits in runs)
        spent.append(draws / found.draws_per_token)
    assert np.mean(np.abs(errors) <= target) >= 0.95
    assert np.mean(spent) == pytest.approx(1, abs=0.05)
    assert np.std(errors) == pytest.approx(found.monte_carlo_se, rel=0.2)


def test_truncation_and_its_error_are_those_of_the_first_hits():
    rng = np.random.default_rng(12)
    hits, cap = first_hits(text_like(rng, 3000), 400, rng), 400
    found = plan(pilot_from_first_hits(hits, cap), half_width=0.1, positions=10_000)
    assert 1 < found.cap < cap
    misses = np.where(hits == NEVER_HIT, cap, hits - 1)
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, cap + 1))])
    lost = np.maximum(harmonic[misses] - harmonic[found.cap - 1], 0) / math.log(2)
    assert found.expected_bias_bits == pytest.approx(-lost.mean(), rel=1e-9)
    assert found.bias_se == pytest.approx(lost.std() / math.sqrt(hits.size), rel=1e-9)


def test_first_hits_tell_what_probabilities_tell():
    rng = np.random.default_rng(7)
    p = np.repeat(text_like(rng, 500), 400)
    from_hits = pilot_from_first_hits(first_hits(p, 100, rng), 100)
    exact = pilot_from_probabilities(p, 100)
    noise = np.sqrt(exact.survival * (1 - exact.survival) / p.size)
    assert (np.abs(from_hits.survival - exact.survival) <= 4.5 * noise).all()
    assert from_hits.beyond == 0 < exact.beyond


def test_explicit_pilot_knows_the_bias_beyond_its_cap():
    p = np.array([0.9, 0.1, 0.01, 0.001])
    j = np.arange(51, 60_000)
    tail = (np.exp(j * np.log1p(-p)[:, None]) / j).sum(axis=1).mean()
    pilot = pilot_from_probabilities(p, 50)
    assert pilot.beyond == pilot.beyond_bound == pytest.approx(tail, rel=1e-9)


def test_the_bound_beyond_the_cap_of_a_smoothed_generator_holds():
    rng = np.random.default_rng(9)
    weight, cap = 1e-2, 200
    p = smoothed_generator(text_like(rng, 4000, 0.05), weight, 27)
    truth = pilot_from_probabilities(p, cap).beyond
    bound = pilot_from_first_hits(first_hits(p, cap, rng), cap, floor=weight / 27).beyond_bound
    assert 0 < truth <= bound < 20 * truth


def test_without_a_floor_nothing_bounds_what_was_not_seen():
    pilot = pilot_from_first_hits([1, 2, 3, NEVER_HIT], 10)
    np.testing.assert_allclose(pilot.survival, [1, 0.75, 0.5] + [0.25] * 8)
    found = plan(pilot, half_width=1.0, positions=1000)
    assert found.bias_bound_bits == -math.inf
    assert math.isfinite(found.expected_bias_bits)
    assert pilot_from_first_hits([NEVER_HIT], 10, floor=0.1).beyond_bound == pytest.approx(math.log(2))


def test_text_noise_can_put_the_target_out_of_reach():
    p = text_like(np.random.default_rng(10), 2000)
    pilot = pilot_from_probabilities(p, 1000)
    noisy = {"block_variance": 0.01, "block_length": 1000}
    found = plan(pilot, half_width=0.05, positions=10_000, **noisy)
    assert not found.feasible
    assert found.half_width > 0.05
    assert found.text_se == pytest.approx(math.sqrt(0.01 / 10))
    enough = plan(pilot, 0.05, positions=2 * found.positions_for_text, **noisy)
    assert enough.feasible
    assert enough.text_se < 0.05 / 1.96


def test_a_model_that_excludes_a_true_token_has_no_plan():
    found = plan(pilot_from_probabilities([0.5, 0.0], 100), half_width=1.0, positions=1000)
    assert not found.feasible
    assert found.expected_bias_bits == -math.inf


def test_a_first_hit_beyond_the_cap_is_refused():
    with pytest.raises(ValueError, match="draw 11 exceeds the pilot's cap of 10"):
        pilot_from_first_hits([5, 11], 10)
