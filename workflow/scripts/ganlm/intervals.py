"""Confidence intervals for bits per token from sums over blocks of text.

Neighbouring tokens, and neighbouring blocks, share their topic, so an interval that treats them as
independent is several times too short. Blocks are therefore merged, doubling their length, until
the standard error stops growing with the length: there the block means are uncorrelated and
Student's t holds. Testing while doubling is the idea of LBATCH and ABATCH (Fishman & Yarberry, INFORMS
J. Computing 9:296, 1997); their von Neumann ratio is replaced by an analysis of variance, which
also sees correlation beyond the next block and allows gaps:

1. Allowed lengths are 1, 2, 4, ... base blocks, as long as `Rule.min_blocks` blocks remain.
2. Length L is on the plateau if no longer allowed length has a significantly larger standard error.
   With m blocks of length L, merged into m' blocks, F = (SSB/(m'-1)) / ((SST-SSB)/(m-m')) has an
   F(m'-1, m-m') distribution when the m block means are independent and normal; for equal blocks
   F > 1 exactly when SE(L') > SE(L). The shortest such length is used. The test is lenient
   (`Rule.test_level`) because a block that is too short costs coverage and one that is too long
   costs little.
3. When there is none, the standard error is still growing at the longest allowed length, or the
   text is too short to show that it is not (`plateau=False`). That length is used, and what is left
   of the correlation φ of neighbouring block means is taken out as for an AR(1) process, as N-Skart
   does (Tafazzoli, Steiger & Wilson, IEEE Trans. Automatic Control 56, 2011): the variance is
   multiplied by k = (1+φ)/(1-φ). The m blocks are worth m/k, which leaves m/k - 1 degrees of freedom.

Draws that all blocks share add an error that block means do not show: see `shared_draws`.

Limits, measured by `benchmarks/coverage.py --hard` for a nominal 95 %: 91 % when a topic lasts a fifth
of the text, 71 % when it lasts half; 85 % on 100,000 tokens whose topics of 20,000 tokens hide under
strong topics of 1,000 (92 % on 1,000,000); 73 % when a topic met about once per text carries the
mean. `plateau=False` warns of most of the first three, nothing of a topic that never occurs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtrit

from ganlm.blocks import Blocks
from ganlm.shared_draws import Component, degrees_of_freedom, drawing, interaction, rests_on_one_group

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """How the block length is chosen; the defaults were tuned for coverage at 1e5 to 5e6 tokens.

    Attributes:
        min_blocks: fewest merged blocks of an allowed length; more blocks give steadier tests,
            fewer reach longer correlations.
        test_level: significance level at which a longer length counts as having a larger error.
        max_correlation: cap on φ, since φ near 1 makes the correction of step 3 explode.
        min_degrees: least degrees of freedom, for the same reason.

    """

    min_blocks: int = 24
    test_level: float = 0.25
    max_correlation: float = 0.9
    min_degrees: float = 2.0

    def __post_init__(self) -> None:
        if self.min_blocks < 2:
            raise ValueError(f"min_blocks is {self.min_blocks}; an error needs at least 2 blocks.")


@dataclass(frozen=True, eq=False)
class Partition:
    """The text cut into blocks of one length: a point of the curve of error against length.

    Block i begins with the base block `first[i]`.
    """

    block_tokens: int
    residuals: FloatArray
    tokens: FloatArray
    first: NDArray[np.int64]

    @property
    def blocks(self) -> int:
        """Number of blocks, m."""
        return self.residuals.size

    @property
    def standard_error(self) -> float:
        """Error of the ratio estimate: sqrt(m/(m-1) Σ r²) / Σ tokens (Cochran 1977, section 6.4)."""
        m = self.blocks
        if m < 2:
            return float("nan")
        return float(np.sqrt(m / (m - 1) * (self.residuals**2).sum()) / self.tokens.sum())

    @property
    def sum_of_squares(self) -> float:
        """Weighted sum of squares of the block means about the mean."""
        return float((self.residuals**2 / self.tokens).sum())

    @property
    def correlation(self) -> float:
        """Lag-one correlation, less its bias -(1+3φ)/m (Marriott & Pope, Biometrika 41, 1954)."""
        squares = (self.residuals**2).sum()
        if squares == 0:
            return 0.0
        raw = (self.residuals[1:] * self.residuals[:-1]).sum() / squares
        return float(raw + (1 + 3 * raw) / self.blocks)


@dataclass(frozen=True)
class Interval:
    """Bits per token with its interval, and how the interval was made.

    A single block has a mean but no error: its bounds are nan. An infinite block makes the mean and
    both bounds infinite, because no finite value is compatible with it. Shared draws of which one group
    alone keeps a block finite leave the error unknown, nan, and the interval unbounded.

    Attributes:
        standard_error: total error, text and Monte-Carlo together.
        block_tokens: length of the merged blocks, in tokens of text from first to last.
        plateau: whether the error was shown to have stopped growing with the length.
        monte_carlo_se: part of the error due to drawing; None for exact probabilities.
        one_group: whether the error of shared draws rests on one group of them.

    """

    mean: float
    standard_error: float
    low: float
    high: float
    level: float
    block_tokens: int
    blocks: int
    degrees_of_freedom: float
    plateau: bool
    monte_carlo_se: float | None = None
    one_group: bool = False

    @property
    def text_se(self) -> float:
        """Error that more draws would not remove: block means already contain the drawing noise."""
        drawing = self.monte_carlo_se or 0.0
        return float(np.sqrt(np.maximum(0.0, self.standard_error**2 - drawing**2)))


def curve(blocks: Blocks, min_blocks: int = Rule.min_blocks) -> list[Partition]:
    """Cut the text at each allowed length, shortest first.

    Blocks are merged by absolute position (`block // factor`), so the result depends neither on
    shards nor on which blocks were left out. Lengths that merge nothing new are skipped.
    """
    base_tokens = int(blocks.tokens.max())
    residuals = blocks.sum_bits - blocks.mean * blocks.tokens
    partitions = [Partition(base_tokens, residuals, blocks.tokens, np.arange(residuals.size))]
    factor = 2
    while True:
        first = np.flatnonzero(np.diff(blocks.block // factor, prepend=-1))
        if first.size < min_blocks:
            return partitions
        if first.size < partitions[-1].blocks:
            merged = (np.add.reduceat(column, first) for column in (residuals, blocks.tokens))
            partitions.append(Partition(base_tokens * factor, *merged, first))
        factor *= 2


def interval(blocks: Blocks, level: float = 0.95, rule: Rule | None = None) -> Interval:
    """Interval for the mean bits per token of the text's source; see the module for the method."""
    if not 0 < level < 1:
        raise ValueError(f"The level {level} is not a probability; use 0.95 for 95 %.")
    rule = rule or Rule()
    if not np.isfinite(blocks.sum_bits).all():
        return _without_error(blocks, level, blocks.mean, blocks.mean)
    if not all(np.isfinite(table).all() for table in blocks.shared):
        return replace(_without_error(blocks, level, -np.inf, np.inf), one_group=True)
    chosen, plateau = _choose(curve(blocks, rule.min_blocks), rule.test_level)
    error, degrees = _between_blocks(chosen, plateau, rule)
    if blocks.shared and chosen.blocks > 1:
        error, degrees = _with_shared_draws(Component(error**2, degrees), blocks, chosen)
    half_width = float(stdtrit(degrees, 0.5 + level / 2)) * error
    return Interval(
        mean=blocks.mean,
        standard_error=error,
        low=blocks.mean - half_width,
        high=blocks.mean + half_width,
        level=level,
        block_tokens=chosen.block_tokens,
        blocks=chosen.blocks,
        degrees_of_freedom=degrees,
        plateau=plateau,
        monte_carlo_se=_monte_carlo_se(blocks),
        one_group=any(map(rests_on_one_group, blocks.shared)),
    )


def paired(
    a: Blocks, b: Blocks, level: float = 0.95, rule: Rule | None = None, same_draws: bool = False
) -> Interval:
    """Interval for the bits per token of `a` minus those of `b`, scored on the same blocks.

    What makes a passage hard for both models cancels, so this is several times shorter than the two
    intervals suggest. The draws of two models are independent, so their variances add; what one model's
    draws do under two protocols, `same_draws`, is subtracted group by group.
    """
    if not np.array_equal(a.block, b.block):
        only = np.setxor1d(a.block, b.block)
        raise ValueError(
            f"The two models were scored on different blocks ({only.size} are in only one of them, "
            f"the first is block {only[0]}); evaluate both on the same blocks."
        )
    unequal = a.block[a.tokens != b.tokens]
    if unequal.size:
        raise ValueError(
            f"The two models were scored on different numbers of tokens in {unequal.size} blocks "
            f"(the first is block {unequal[0]}); evaluate both with the same protocol."
        )
    undefined = a.block[np.isinf(a.sum_bits) & (a.sum_bits == b.sum_bits)]
    if undefined.size:
        raise ValueError(
            f"Both models give infinite bits in block {undefined[0]}, so their difference is "
            "undefined; compare smoothed models."
        )
    stated = [x.mc_variance for x in (a, b) if x.mc_variance is not None]
    variance = np.sum(stated, axis=0) if stated else None
    shared = a.shared + b.shared
    if same_draws:
        shared = tuple(first - second for first, second in zip(a.shared, b.shared, strict=True))
    difference = Blocks(a.sum_bits - b.sum_bits, a.tokens, a.block, variance, shared)
    return interval(difference, level, rule)


def _choose(partitions: Sequence[Partition], test_level: float) -> tuple[Partition, bool]:
    """Shortest length on the plateau, or the longest one and False."""
    for i, short in enumerate(partitions[:-1]):
        if all(_growth_p_value(short, long) >= test_level for long in partitions[i + 1 :]):
            return short, True
    return partitions[-1], False


def _growth_p_value(short: Partition, long: Partition) -> float:
    """Chance of an error at the longer length this much larger, if short blocks are independent."""
    within = short.sum_of_squares - long.sum_of_squares
    if within <= 0:
        return float(long.sum_of_squares == 0)
    merged = long.blocks - 1
    left = short.blocks - long.blocks
    return float(fdtrc(merged, left, (long.sum_of_squares / merged) / (within / left)))


def _between_blocks(chosen: Partition, plateau: bool, rule: Rule) -> tuple[float, float]:
    """Standard error by the spread of the blocks, and its degrees of freedom; step 3 off the plateau."""
    error, degrees = chosen.standard_error, chosen.blocks - 1.0
    if plateau or chosen.blocks < 2:
        return error, degrees
    correlation = np.clip(chosen.correlation, 0.0, rule.max_correlation)
    inflation = float((1 + correlation) / (1 - correlation))
    floor = min(rule.min_degrees, degrees)
    return error * inflation**0.5, max(floor, chosen.blocks / inflation - 1)


def _with_shared_draws(text: Component, blocks: Blocks, chosen: Partition) -> tuple[float, float]:
    """Standard error and degrees of freedom, draws that all blocks share included; none counts twice.

    Blocks that differ by less than the draws explain show no error of the text.
    """
    parts = [drawing(table, blocks.tokens) for table in blocks.shared]
    merged = [np.add.reduceat(table, chosen.first) for table in blocks.shared]
    twice = [interaction(table, chosen.tokens) for table in merged]
    if text.variance > sum(part.variance for part in twice):
        parts += [text, *twice]
    return float(np.sqrt(sum(part.sign * part.variance for part in parts))), degrees_of_freedom(parts)


def _monte_carlo_se(blocks: Blocks) -> float | None:
    """Error of the mean due to drawing alone: by each block for itself, and by draws that all share."""
    if blocks.mc_variance is None and not blocks.shared:
        return None
    own = 0.0 if blocks.mc_variance is None else blocks.mc_variance.sum() / blocks.tokens.sum() ** 2
    return float(np.sqrt(own + sum(drawing(table, blocks.tokens).variance for table in blocks.shared)))


def _without_error(blocks: Blocks, level: float, low: float, high: float) -> Interval:
    """Interval of a model that gave, or with other draws might give, probability zero to what occurred."""
    return Interval(
        mean=blocks.mean,
        standard_error=float("nan"),
        low=low,
        high=high,
        level=level,
        block_tokens=int(blocks.tokens.max()),
        blocks=blocks.tokens.size,
        degrees_of_freedom=float("nan"),
        plateau=False,
        monte_carlo_se=_monte_carlo_se(blocks),
    )
