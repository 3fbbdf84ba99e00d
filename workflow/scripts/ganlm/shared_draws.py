"""Error of an estimate whose blocks share their draws: text and draws as a crossed design.

Blocks of text meet groups of noise draws; each group added something to the total of each block. With m
blocks, G groups, and the variances t² of the text, d² of the draws and i² of what a block and a group do only
together,

    Var(mean) = t²/m + d²/G + i²/(m G).

The variance between block means estimates t²/m + i²/(m G): what the draws do to all blocks alike cancels in
it. The variance between groups, `drawing`, estimates d²/G + i²/(m G), which is what more draws would remove.
Their sum holds the `interaction` i²/(m G) twice, so it is taken off once (two-way random effects without
replication; Searle, Casella & McCulloch, Variance Components, 1992, chapter 4).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Component:
    """An estimated part of a variance, its sign in the sum, and its degrees of freedom."""

    variance: float
    degrees_of_freedom: float
    sign: int = 1


def drawing(added: FloatArray, tokens: FloatArray) -> Component:
    """Variance of the mean due to the draws, given the text, from what each group added to each block.

    It is nan where that is not known of a group.
    """
    groups = added.shape[1]
    totals = _centred(added.sum(axis=0))
    return Component(_scale(groups) * float((totals**2).sum()) / tokens.sum() ** 2, groups - 1.0)


def rests_on_one_group(added: FloatArray) -> bool:
    """Whether one group makes up most of `drawing`, which then is luck; once in 100 among normals."""
    squares = _centred(added.sum(axis=0)) ** 2
    return bool(squares.max() > squares.sum() / 2)


def interaction(added: FloatArray, tokens: FloatArray) -> Component:
    """The part of `drawing` that is also in the variance between the means of these blocks."""
    blocks, groups = added.shape
    common = _centred(added.sum(axis=0)) / tokens.sum()
    apart = _centred(added) - tokens[:, None] * common
    variance = _scale(blocks) * _scale(groups) * float((apart**2).sum()) / tokens.sum() ** 2
    return Component(variance, (blocks - 1.0) * (groups - 1.0), sign=-1)


def degrees_of_freedom(components: list[Component]) -> float:
    """Of a sum of independent variances (Satterthwaite, Biometrics Bulletin 2:110, 1946)."""
    total = sum(part.sign * part.variance for part in components)
    spread = sum(part.variance**2 / part.degrees_of_freedom for part in components)
    return total**2 / spread if spread > 0 else components[0].degrees_of_freedom


def _centred(values: FloatArray) -> FloatArray:
    """Without the mean over groups, which is the estimate's bias and not its error."""
    return values - values.mean(axis=-1, keepdims=True)


def _scale(number: int) -> float:
    """n / (n - 1), for a sum of squares about a mean that was estimated."""
    return number / (number - 1) if number > 1 else np.nan
