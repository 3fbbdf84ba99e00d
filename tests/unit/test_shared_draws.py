"""The crossed design against simulations whose components are known."""

import numpy as np
import pytest
from scipy import stats

from ganlm.intervals import Blocks, Rule, interval, paired
from ganlm.shared_draws import Component, degrees_of_freedom, drawing, interaction

TEXT, DRAWS, BOTH = 4.0, 1.5, 8.0
ONE_LENGTH = Rule(test_level=0.0)


def simulated(rng, blocks=50, groups=10):
    """Totals of blocks of 10 tokens with mean 20, and what each group added to them."""
    text = rng.normal(20, TEXT, blocks)
    noise = (rng.normal(0, DRAWS, groups) + rng.normal(0, BOTH, (blocks, groups))) / groups
    return text + noise.sum(axis=1), noise - noise.mean(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(2)
    runs = [simulated(rng) for _ in range(1500)]
    tokens = np.full(50, 10)
    return runs, [interval(Blocks(sums, tokens, shared=(added,)), rule=ONE_LENGTH) for sums, added in runs]


def test_no_part_of_the_error_counts_twice(found):
    runs, intervals = found
    spread = np.var([x.mean for x in intervals], ddof=1)
    expected = (TEXT**2 / 50 + DRAWS**2 / 10 + BOTH**2 / 500) / 100
    assert spread == pytest.approx(expected, rel=0.15)
    assert np.mean([x.standard_error**2 for x in intervals]) == pytest.approx(expected, rel=0.03)
    assert np.mean([x.monte_carlo_se**2 for x in intervals]) == pytest.approx(
        (DRAWS**2 / 10 + BOTH**2 / 500) / 100, rel=0.04
    )
    assert np.mean([x.text_se**2 for x in intervals]) == pytest.approx(TEXT**2 / 5000, rel=0.04)
    tables = [added for _, added in runs]
    both = np.mean([interaction(table, np.full(50, 10.0)).variance for table in tables])
    assert both == pytest.approx(BOTH**2 / 500 / 100, rel=0.02)


def test_intervals_cover(found):
    covered = np.mean([x.low <= 2 <= x.high for x in found[1]])
    assert covered == pytest.approx(0.95, abs=0.02)


def test_blocks_alone_would_not(found):
    """Block means do not see what the draws do to all blocks alike."""
    alone = [interval(Blocks(sums, np.full(50, 10)), rule=ONE_LENGTH) for sums, _ in found[0]]
    assert np.mean([x.low <= 2 <= x.high for x in alone]) < 0.92


def test_a_table_without_text_noise_leaves_only_draws():
    rng = np.random.default_rng(1)
    added = np.outer(np.full(30, 1.0), stats.zscore(rng.normal(size=12)))
    got = interval(Blocks(np.full(30, 5.0), np.full(30, 1), shared=(added,)))
    assert got.monte_carlo_se == got.standard_error == pytest.approx((12 / 11 * 12) ** 0.5)
    assert got.text_se == 0
    assert got.degrees_of_freedom == pytest.approx(11)
    assert got.high - got.mean == pytest.approx(stats.t.ppf(0.975, 11) * got.standard_error)


def test_degrees_of_freedom_are_satterthwaite_s():
    parts = [Component(2.0, 10), Component(1.0, 5), Component(0.5, 50, sign=-1)]
    assert degrees_of_freedom(parts) == pytest.approx(2.5**2 / (4 / 10 + 1 / 5 + 0.25 / 50))
    assert degrees_of_freedom([Component(3.0, 7)]) == pytest.approx(7)


def test_a_bias_common_to_all_groups_is_no_error():
    added = np.random.default_rng(1).normal(size=(6, 5))
    tokens = np.arange(1.0, 7.0)
    for part in (drawing, interaction):
        shifted = part(added + 3 * tokens[:, None], tokens)
        assert shifted.variance == pytest.approx(part(added, tokens).variance)


def test_what_a_pair_of_models_shares_with_nobody_adds_up():
    rng = np.random.default_rng(4)
    tokens = np.full(50, 10)
    (a, table), (b, other) = simulated(rng), simulated(rng, groups=7)
    both = paired(Blocks(a, tokens, shared=(table,)), Blocks(b, tokens, shared=(other,)))
    one = paired(Blocks(a, tokens, shared=(table,)), Blocks(b, tokens))
    parts = [drawing(each, tokens.astype(float)).variance for each in (table, other)]
    assert both.monte_carlo_se == pytest.approx(sum(parts) ** 0.5)
    assert one.monte_carlo_se == pytest.approx(parts[0] ** 0.5)


def test_order_of_blocks_does_not_matter():
    sums, added = simulated(np.random.default_rng(5))
    order = np.random.default_rng(6).permutation(50)
    tokens = np.append(np.full(49, 10), 3)
    whole = interval(Blocks(sums, tokens, shared=(added,)))
    assert interval(Blocks(sums[order], tokens[order], order, shared=(added[order],))) == whole


def test_merged_blocks_merge_what_the_groups_added():
    """Neighbours that share their interaction: base blocks would take off too little of it."""
    rng = np.random.default_rng(8)
    text = np.repeat(rng.normal(0, 1, 100), 4)
    noise = np.repeat(rng.normal(0, 3, (100, 10)), 4, axis=0)
    added = noise - noise.mean(axis=1, keepdims=True)
    got = interval(Blocks(text + noise.sum(axis=1), np.ones(400), shared=(added,)))
    assert got.block_tokens >= 4
    assert got.text_se < 0.6 * interval(Blocks(text + noise.sum(axis=1), np.ones(400))).standard_error


@pytest.mark.parametrize("table", [np.ones((3, 5)), np.ones((2, 1)), np.ones(2)])
def test_a_table_that_does_not_fit_gets_one_sentence(table):
    with pytest.raises(ValueError, match="a table of 2 blocks and 2 groups or more, not"):
        Blocks([1, 2], [1, 1], shared=(table,))


def test_draws_that_two_protocols_share_cancel_group_by_group():
    """Simulated: 2,000 sets of draws that move both means alike, and the difference by a tenth of that."""
    rng = np.random.default_rng(1)
    tokens, stated, means = np.full(40, 1), [], []
    for _ in range(2000):
        both, apart = rng.normal(0, 1, (1, 20)), rng.normal(0, 0.1, (1, 20))
        short, long = np.repeat(both, 40, axis=0), np.repeat(both + apart, 40, axis=0)
        a, b = (Blocks(each.sum(axis=1), tokens, shared=(each,)) for each in (long, short))
        stated.append(paired(a, b, same_draws=True).monte_carlo_se)
        means.append(paired(a, b).mean)
    assert np.sqrt(np.mean(np.square(stated))) == pytest.approx(np.std(means), rel=0.05)
    assert paired(a, b).monte_carlo_se > 5 * stated[-1]
