"""Intervals against closed forms, known asymptotic errors and simulated coverage."""

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ganlm.intervals import Blocks, Rule, curve, interval, paired

ROOT = Path(__file__).parents[2]


def ar1(rng, rho, shape):
    """Stationary AR(1) rows of unit variance."""
    x = rng.normal(size=shape)
    x[:, 1:] *= math.sqrt(1 - rho**2)
    for i in range(1, shape[1]):
        x[:, i] += rho * x[:, i - 1]
    return x


def one_length(**kwargs):
    """Rule that allows the base length only, so that no choice is involved."""
    return Rule(min_blocks=10**9, **kwargs)


class TestClosedForms:
    def test_independent_blocks_give_the_classical_t_interval(self):
        means = np.random.default_rng(3).normal(2.0, 0.3, 64)
        got = interval(Blocks(1000 * means, np.full(64, 1000)), level=0.9)
        expected = stats.t.interval(0.9, 63, loc=means.mean(), scale=stats.sem(means))
        assert (got.plateau, got.blocks, got.block_tokens) == (True, 64, 1000)
        np.testing.assert_allclose([got.low, got.high], expected, rtol=1e-12)

    def test_unequal_blocks_give_the_ratio_estimate_by_hand(self):
        point = curve(Blocks([10, 30, 8], [10, 20, 5]))[0]
        residuals = np.array([10, 30, 8]) - 48 / 35 * np.array([10, 20, 5])
        assert point.standard_error == pytest.approx(math.sqrt(1.5 * (residuals @ residuals)) / 35)

    def test_growth_test_is_scipy_one_way_anova(self):
        means = np.random.default_rng(0).normal(size=60) + np.repeat([0, 0.6] * 15, 2)
        p_value = stats.f_oneway(*means.reshape(30, 2)).pvalue
        blocks = Blocks(means, np.ones(60))
        lenient, strict = p_value * 1.001, p_value * 0.999
        assert interval(blocks, rule=Rule(test_level=strict)).block_tokens == 1
        assert interval(blocks, rule=Rule(test_level=lenient)).block_tokens == 2

    def test_correlation_left_over_widens_the_error_and_costs_degrees_of_freedom(self):
        means = ar1(np.random.default_rng(1), 0.6, (1, 30))[0]
        residuals = means - means.mean()
        raw = residuals[1:] @ residuals[:-1] / (residuals @ residuals)
        phi = raw + (1 + 3 * raw) / 30
        got = interval(Blocks(means, np.ones(30)), rule=one_length())
        k = (1 + phi) / (1 - phi)
        assert 0 < phi < 0.9
        assert not got.plateau
        assert got.standard_error == pytest.approx(stats.sem(means) * math.sqrt(k))
        assert got.degrees_of_freedom == pytest.approx(30 / k - 1)
        assert got.high - got.mean == pytest.approx(stats.t.ppf(0.975, 30 / k - 1) * got.standard_error)

    @pytest.mark.parametrize("rho", [0.5, 0.9])
    def test_ar1_blocks_reach_the_asymptotic_error(self, rho):
        """Var(mean) n → (1+ρ)/(1-ρ); merging L blocks leaves 1 - 2ρ(1-ρ^L)/(L(1-ρ²)) of it."""
        length, n = 64, 4096
        points = [
            next(p for p in curve(Blocks(x, np.ones(n))) if p.block_tokens == length)
            for x in ar1(np.random.default_rng(7), rho, (300, n))
        ]
        variance = n * np.mean([p.standard_error**2 for p in points])
        left = 1 - 2 * rho * (1 - rho**length) / (length * (1 - rho**2))
        assert variance == pytest.approx(left * (1 + rho) / (1 - rho), rel=0.05)

    def test_chosen_error_is_the_asymptotic_one(self):
        rows = ar1(np.random.default_rng(8), 0.8, (200, 4000))
        chosen = [interval(Blocks(x, np.ones(4000))) for x in rows]
        error = np.sqrt(4000 * np.mean([x.standard_error**2 for x in chosen]))
        assert error == pytest.approx(3.0, rel=0.1)
        assert np.mean([x.plateau for x in chosen]) > 0.6
        assert min(x.block_tokens for x in chosen) >= 4


class TestCurve:
    def test_lengths_double_while_enough_blocks_remain(self):
        points = curve(Blocks(np.arange(100.0), np.full(100, 10)), min_blocks=13)
        assert [(p.block_tokens, p.blocks) for p in points] == [
            (10, 100),
            (20, 50),
            (40, 25),
            (80, 13),
        ]

    def test_a_subset_is_merged_by_absolute_position(self):
        block = np.array([0, 1, 5, 6, 7, 12])
        bits = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
        points = curve(Blocks(bits, np.ones(6), block), min_blocks=2)
        totals = [(p.residuals + bits.mean() * p.tokens).tolist() for p in points]
        assert totals == [bits.tolist(), [3, 4, 24, 32], [3, 28, 32], [31, 32]]
        assert [p.block_tokens for p in points] == [1, 2, 4, 8]

    def test_lengths_that_merge_nothing_are_left_out(self):
        points = curve(Blocks(np.arange(60.0), np.ones(60), np.arange(60) * 20))
        assert [(p.block_tokens, p.blocks) for p in points] == [(1, 60), (32, 37)]


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(80)), st.integers(1, 79))
def test_order_and_shards_do_not_matter(order, cut):
    rng = np.random.default_rng(5)
    bits, variance = rng.gamma(20, 100, 80), rng.random(80)
    tokens = np.append(np.full(79, 1000), 437)
    whole = interval(Blocks(bits, tokens, mc_variance=variance))
    shards = np.concatenate([order[cut:], order[:cut]])
    assert interval(Blocks(bits[shards], tokens[shards], shards, variance[shards])) == whole


class TestPaired:
    def test_difference_is_the_interval_of_differences(self):
        rng = np.random.default_rng(9)
        hard = rng.normal(2000, 200, 50)
        a, b = hard + rng.normal(30, 10, 50), hard + rng.normal(0, 10, 50)
        tokens = np.full(50, 1000)
        got = paired(Blocks(a, tokens), Blocks(b, tokens))
        assert got == interval(Blocks(a - b, tokens))
        assert got.low < 0.03 < got.high
        assert got.standard_error < 0.2 * interval(Blocks(a, tokens)).standard_error

    def test_shuffled_blocks_are_matched_by_position(self):
        bits, tokens = np.arange(30.0) ** 2, np.full(30, 10)
        back = np.arange(30)[::-1]
        got = paired(Blocks(bits, tokens), Blocks(bits[back], tokens, back))
        assert (got.mean, got.low, got.high) == (0, 0, 0)

    def test_drawing_variances_add(self):
        a = Blocks([1, 2, 3], [10, 10, 10], mc_variance=[1, 2, 3])
        b = Blocks([1, 2, 4], [10, 10, 10], mc_variance=[3, 3, 3])
        exact = Blocks([1, 2, 4], [10, 10, 10])
        assert paired(a, b).monte_carlo_se == pytest.approx(math.sqrt(15) / 30)
        assert paired(a, exact).monte_carlo_se == pytest.approx(math.sqrt(6) / 30)
        assert paired(exact, exact).monte_carlo_se is None

    @pytest.mark.parametrize(
        ("other", "sentence"),
        [
            (Blocks([1, 2], [5, 5]), r"different blocks \(1 .* first is block 2\)"),
            (Blocks([1, 2, 3], [5, 5, 4]), "numbers of tokens in 1 blocks .*block 2"),
        ],
    )
    def test_other_text_is_refused(self, other, sentence):
        with pytest.raises(ValueError, match=sentence):
            paired(Blocks([1, 2, 3], [5, 5, 5]), other)


def test_monte_carlo_error_is_stated_apart_and_not_added_twice():
    """Blocks of 100 tokens: text sd 4 bits, drawing sd 3 bits, so the total sd is 5 bits."""
    rng = np.random.default_rng(11)
    sums = 200 + rng.normal(0, 4, (1000, 100)) + rng.normal(0, 3, (1000, 100))
    rule = Rule(test_level=0.0)
    got = [interval(Blocks(x, np.full(100, 100), None, np.full(100, 9.0)), rule=rule) for x in sums]
    per_block = 1 / (100 * math.sqrt(100))
    assert {x.monte_carlo_se for x in got} == {3 * per_block}
    assert np.mean([x.standard_error**2 for x in got]) == pytest.approx((5 * per_block) ** 2, rel=0.02)
    assert np.mean([x.text_se**2 for x in got]) == pytest.approx((4 * per_block) ** 2, rel=0.03)
    assert replace(got[0], monte_carlo_se=1.0).text_se == 0
    assert replace(got[0], monte_carlo_se=None).text_se == got[0].standard_error


class TestDegenerate:
    def test_one_block_has_a_mean_and_no_bounds(self):
        got = interval(Blocks([30], [10]))
        assert got.mean == 3
        assert all(math.isnan(x) for x in (got.standard_error, got.low, got.high, got.text_se))
        assert not got.plateau

    @pytest.mark.parametrize("m", [2, 3, 5])
    def test_few_blocks_are_at_least_as_wide_as_student(self, m):
        means = np.random.default_rng(m).normal(size=m)
        got = interval(Blocks(means, np.ones(m)))
        low, high = stats.t.interval(0.95, m - 1, loc=means.mean(), scale=stats.sem(means))
        assert got.low <= low + 1e-12
        assert got.high >= high - 1e-12

    def test_equal_blocks_have_no_error(self):
        got = interval(Blocks(np.full(96, 64.0), np.full(96, 32)))
        assert (got.low, got.mean, got.high, got.plateau) == (2, 2, 2, True)

    def test_a_token_of_probability_zero_is_infinite(self):
        got = interval(Blocks([1.0, math.inf, 2.0], [1, 1, 1]))
        assert (got.mean, got.low, got.high) == (math.inf, math.inf, math.inf)

    def test_infinite_differences(self):
        finite, infinite = Blocks([1.0, 2.0], [1, 1]), Blocks([1.0, math.inf], [1, 1])
        assert paired(finite, infinite).high == -math.inf
        with pytest.raises(ValueError, match="infinite bits in block 1"):
            paired(infinite, infinite)

    @pytest.mark.parametrize(
        ("columns", "sentence"),
        [
            (([], []), "one equal length of at least 1"),
            (([1, 2], [1]), "one equal length"),
            (([1, math.nan], [1, 1]), r"Block 1 has no number of bits \(nan\)"),
            (([1, 2], [1, 0]), "Block 1 has no tokens"),
            (([math.inf, -math.inf], [1, 1]), "no mean"),
            (([1, 2], [1, 1], [4, 4]), "1 blocks are repeated"),
            (([1, 2], [1, 1], [0, -1]), "non-negative integers"),
            (([1, 2], [1, 1], [0.5, 1.0]), "non-negative integers"),
            (([1, 2], [1, 1], [6, 4], [-1.0, 0]), "Block 6 has no valid mc_variance"),
        ],
    )
    def test_invalid_data_gets_one_sentence(self, columns, sentence):
        with pytest.raises(ValueError, match=sentence) as error:
            Blocks(*columns)
        assert "\n" not in str(error.value)

    def test_invalid_settings(self):
        with pytest.raises(ValueError, match=r"use 0\.95 for 95 %"):
            interval(Blocks([1, 2], [1, 1]), level=95)
        with pytest.raises(ValueError, match="at least 2 blocks"):
            Rule(min_blocks=1)


@pytest.fixture(scope="module")
def coverage():
    """The benchmark, loaded by path because `coverage` is also the name of a package."""
    spec = importlib.util.spec_from_file_location("coverage_benchmark", ROOT / "benchmarks" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class TestCoverage:
    """Short twin of `benchmarks/coverage.py`."""

    def cases(self, coverage):
        return {(source.name, tokens): source for source, tokens, _ in coverage.cases(hard=True)}

    @pytest.mark.parametrize(
        ("name", "tokens"),
        [
            ("markov", 100_000),
            ("topics-5000", 100_000),
            ("topics-20000", 10**6),
            ("shared-draws-200", 100_000),
        ],
    )
    def test_interval_contains_the_truth(self, coverage, name, tokens):
        source = self.cases(coverage)[name, tokens]
        row = coverage.measure(source, tokens // 1000, 1000, 300, seed=0, level=0.95)
        assert 0.91 < row.coverage < 0.985

    def test_base_blocks_alone_would_not(self, coverage):
        """The sources are not easy: without merging, most intervals miss."""
        source = self.cases(coverage)["topics-20000", 10**6]
        sums = source.draw(np.random.default_rng(0), 100, 1000, 1000)
        means, errors = sums.mean(1) / 1000, stats.sem(sums, axis=1) / 1000
        assert np.mean(np.abs(means - source.truth) <= 1.96 * errors) < 0.6

    @pytest.mark.parametrize("name", ["markov", "topics-5000", "two-scales", "rare-topic"])
    def test_stated_truth_is_the_mean_of_many_texts(self, coverage, name):
        source = self.cases(coverage)[name, 100_000 if name != "markov" else 10**6]
        means = source.draw(np.random.default_rng(2), 1500, 50, 400).mean(1) / 400
        assert abs(means.mean() - source.truth) < 4 * stats.sem(means)
