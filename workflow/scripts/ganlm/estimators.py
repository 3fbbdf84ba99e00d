"""From draws to bits: how surprised a generator is by the true token, from its draws alone.

Every estimator is a frozen dataclass of one shape, so that a list of names is enough to run them:

    name, unit          what it is called, and whether it estimates "bits" or a "score"
    inputs              the statistics of the draws that `estimate` takes, by keyword
    estimate            the value at every position
    estimated_variance  its Monte-Carlo variance, from the same draws
    expectation, bias, variance, expected_draws   as functions of p, the probability of the token

`plug-in`, `smoothed` and `harmonic` count hits among N draws, `ibs` and `rb-ibs` draw until the
first hit; for these the functions of p are exact (tables, off by less than 1e-9 bits, see
`binomial`). `mean-softmax` averages probabilities, `brier` needs no logarithm.
"""

from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ganlm.fixed_draws import (
    LN2,
    Array,
    Harmonic,
    PlugIn,
    Smoothed,
    checked_counts,
    harmonic_number,
    inverse_squares,
    surprisal,
)
from ganlm.inverse_binomial import NEVER_HIT, Ibs, RbIbs

__all__ = [
    "ESTIMATORS",
    "LN2",
    "NEVER_HIT",
    "Array",
    "Brier",
    "Estimator",
    "Harmonic",
    "Ibs",
    "MeanSoftmax",
    "PlugIn",
    "RbIbs",
    "Smoothed",
    "build",
    "first_hits",
    "gold_counts",
    "harmonic_number",
    "inverse_squares",
    "matching_pairs",
    "smoothed_generator",
    "surprisal",
]


@dataclass(frozen=True)
class MeanSoftmax:
    """-log2 of the mean over N noise draws z of p(token | z), for latent models.

    Rao-Blackwell over the last draw: no token is sampled, so the spread Var_z p(token | z) is at
    most the p (1 - p) of sampled tokens. Jensen's inequality still makes it too large on average.
    The functions of p hold to first order in 1/N, for a spread << N p².
    """

    draws: int
    clip: float = 1e-20
    name: ClassVar[str] = "mean-softmax"
    unit: ClassVar[str] = "bits"
    inputs: ClassVar[tuple[str, ...]] = ("mean",)

    def estimate(self, mean: ArrayLike) -> Array:
        """Bits from the mean probability over the draws."""
        return surprisal(np.maximum(mean, self.clip))

    def estimated_variance(self, mean: ArrayLike, spread: ArrayLike) -> Array:
        """`variance` at the mean and the sample variance of the probabilities over the draws."""
        return self.variance(np.maximum(mean, self.clip), spread)

    def expectation(self, p: ArrayLike, spread: ArrayLike) -> Array:
        """-log2 p + spread / (2 N p² ln 2)."""
        return surprisal(p) + self.bias(p, spread)

    def bias(self, p: ArrayLike, spread: ArrayLike) -> Array:
        """spread / (2 N p² ln 2)."""
        return self.variance(p, spread) * LN2 / 2

    def variance(self, p: ArrayLike, spread: ArrayLike) -> Array:
        """spread / (N p² ln² 2), the delta method."""
        return np.asarray(spread) / (self.draws * (np.asarray(p, dtype=float) * LN2) ** 2)

    def expected_draws(self, p: ArrayLike) -> Array:
        """N, whatever p."""
        return np.full(np.shape(p), float(self.draws))

    def jackknife(self, probabilities: ArrayLike) -> Array:
        """N f(mean) - (N - 1) mean_i f(mean without draw i): removes the bias of order 1/N.

        Draws run along the first axis. Only for soft softmaxes: on nearly one-hot ones, leaving out
        the only draw that hits jumps to the clip, and the noise grows to several bits.
        """
        probabilities = np.asarray(probabilities, dtype=float)
        if len(probabilities) != self.draws or self.draws < 2:
            raise ValueError(
                f"the jackknife needs all of {self.draws} >= 2 draws along the first axis, "
                f"not {len(probabilities)}."
            )
        total = probabilities.sum(axis=0)
        without_one = (total - probabilities) / (self.draws - 1)
        whole = self.estimate(total / self.draws)
        return self.draws * whole - (self.draws - 1) * self.estimate(without_one).mean(axis=0)


@dataclass(frozen=True)
class Brier:
    """2 k/N - Σ_v c_v (c_v - 1) / (N (N - 1)), from the counts c_v of all tokens; k = c_token.

    The unbiased estimate of the Brier score 2 p - Σ_v p_v², which is 1 minus the squared distance
    between the distribution and the true token: at most 1, higher is better. It is the U-statistic
    of 1{x = token} + 1{x' = token} - 1{x = x'} over pairs of draws (CALM, Shao et al. 2025).
    """

    draws: int
    name: ClassVar[str] = "brier"
    unit: ClassVar[str] = "score"
    inputs: ClassVar[tuple[str, ...]] = ("counts", "pairs")

    def __post_init__(self) -> None:
        if self.draws < 2:
            raise ValueError(f"brier needs at least 2 draws, not {self.draws}.")

    def estimate(self, counts: ArrayLike, pairs: ArrayLike) -> Array:
        """Score from the counts of the token and the `matching_pairs` of all tokens."""
        counts = checked_counts(counts, self.draws)
        return 2 * counts / self.draws - np.asarray(pairs) / (self.draws * (self.draws - 1))

    def expectation(self, p: ArrayLike, squares: ArrayLike) -> Array:
        """2 p - Σ_v p_v²; `squares` is that sum."""
        return 2 * np.asarray(p, dtype=float) - squares

    def bias(self, p: ArrayLike, squares: ArrayLike) -> Array:
        """None."""
        return np.zeros(np.broadcast_shapes(np.shape(p), np.shape(squares)))

    def variance(self, p: ArrayLike, squares: ArrayLike, cubes: ArrayLike) -> Array:
        """(4 (N - 2) ζ1 + 2 ζ2) / (N (N - 1)), Hoeffding's formula; `cubes` is Σ_v p_v³.

        ζ1 and ζ2 are the variances of the kernel given one draw, and over both.
        """
        p, squares = np.asarray(p, dtype=float), np.asarray(squares, dtype=float)
        mean_square = self.expectation(p, squares) ** 2
        given_one = p + p**2 + cubes - 2 * p * squares - mean_square
        over_both = 2 * p + squares - 2 * p**2 - mean_square
        n = self.draws
        return np.maximum(4 * (n - 2) * given_one + 2 * over_both, 0) / (n * (n - 1))

    def expected_draws(self, p: ArrayLike) -> Array:
        """N, whatever p."""
        return np.full(np.shape(p), float(self.draws))


Estimator = PlugIn | Smoothed | Harmonic | Ibs | RbIbs | MeanSoftmax | Brier
ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (PlugIn, Smoothed, Harmonic, Ibs, RbIbs, MeanSoftmax, Brier)
}


@cache
def build(name: str, **settings: float | None) -> Estimator:
    """The estimator of that name; of the settings it takes those it has, so one set serves all.

    Equal settings give the same object, so that its tables are made once.
    """
    if name not in ESTIMATORS:
        raise ValueError(f"unknown estimator '{name}': choose from {', '.join(ESTIMATORS)}.")
    kind = ESTIMATORS[name]
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in settings]
    if missing:
        raise ValueError(f"estimator '{name}' needs the setting {' and '.join(missing)}.")
    return kind(**{f.name: settings[f.name] for f in fields(kind) if f.name in settings})


def gold_counts(p: ArrayLike, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Hits among `draws` draws of a model whose p is known: Binomial(draws, p), in one step."""
    return rng.binomial(draws, p)


def first_hits(p: ArrayLike, cap: int | None, rng: np.random.Generator, after: int = 0) -> NDArray[np.int64]:
    """First hits of a model whose p is known, given that its first `after` draws missed.

    A geometric waiting time has no memory, so those draws only shift it.
    """
    p = np.asarray(p, dtype=float)
    limit = np.iinfo(np.int64).max if cap is None else cap
    waits = rng.geometric(np.where(p > 0, p, 1.0))
    return np.where((p > 0) & (waits <= limit - after), waits + after, NEVER_HIT)


def matching_pairs(counts: ArrayLike) -> NDArray[np.int64]:
    """Ordered pairs of equal draws, Σ_v c_v (c_v - 1), from counts with tokens on the last axis."""
    counts = np.asarray(counts)
    return (counts * (counts - 1)).sum(axis=-1)


def smoothed_generator(p: ArrayLike, weight: float, alphabet_size: int) -> Array:
    """Probability under (1 - weight) G + weight Uniform: at least weight / alphabet_size.

    No finite sample bounds the bits of a generator that may have p = 0. Those of this one are
    bounded, and `ibs` estimates them without bias in at most alphabet_size / weight draws on
    average.
    """
    return (1 - weight) * np.asarray(p, dtype=float) + weight / alphabet_size
