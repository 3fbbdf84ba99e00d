"""Estimators of -log2 p from the count k of hits among a fixed number N of draws."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, polygamma

from ganlm import binomial

Array = NDArray[np.float64]
LN2 = np.log(2.0)


def surprisal(p: ArrayLike) -> Array:
    """-log2 p in bits, infinite at p = 0: what the estimators estimate."""
    with np.errstate(divide="ignore"):
        return np.log2(np.divide(1.0, p))


def harmonic_number(n: ArrayLike) -> Array:
    """H_n = Σ_{j<=n} 1/j = ψ(n + 1) - ψ(1)."""
    return digamma(np.asarray(n, dtype=float) + 1) - digamma(1.0)


def inverse_squares(n: ArrayLike) -> Array:
    """Σ_{j<=n} 1/j² = ψ'(1) - ψ'(n + 1)."""
    return polygamma(1, 1.0) - polygamma(1, np.asarray(n, dtype=float) + 1)


def checked_counts(counts: ArrayLike, draws: int) -> NDArray[np.int64]:
    """The counts as an array, if they can be counts of hits among that many draws."""
    counts = np.asarray(counts)
    if counts.size and not (counts.min() >= 0 and counts.max() <= draws):
        raise ValueError(
            f"counts of hits must lie between 0 and the {draws} draws, not {counts.min()} to {counts.max()}."
        )
    return counts


@dataclass(frozen=True)
class FixedDraws(ABC):
    """What these estimators share: f(k) for k = 0, ..., N, and its moments under Binomial(N, p)."""

    draws: int
    unit: ClassVar[str] = "bits"
    inputs: ClassVar[tuple[str, ...]] = ("counts",)

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"draws must be at least 1, not {self.draws}.")

    @property
    @abstractmethod
    def values(self) -> Array:
        """f(k) in bits for k = 0, ..., N."""

    def estimate(self, counts: ArrayLike) -> Array:
        """Bits from the counts of hits."""
        return self.values[checked_counts(counts, self.draws)]

    def estimated_variance(self, counts: ArrayLike) -> Array:
        """The exact variance at p = (k + 1/2) / (N + 1)."""
        return self.variance((checked_counts(counts, self.draws) + 0.5) / (self.draws + 1))

    def expectation(self, p: ArrayLike) -> Array:
        """Σ_k Binom(k; N, p) f(k)."""
        return self._mean(p)

    def bias(self, p: ArrayLike) -> Array:
        """Expectation minus -log2 p."""
        return self.expectation(p) - surprisal(p)

    def variance(self, p: ArrayLike) -> Array:
        """Σ_k Binom(k; N, p) f(k)² minus the square of the expectation."""
        return np.maximum(self._variance(p), 0)

    def expected_draws(self, p: ArrayLike) -> Array:
        """N, whatever p."""
        return np.full(np.shape(p), float(self.draws))

    @cached_property
    def _mean(self) -> binomial.Table:
        return binomial.tabulate_expectation(self.values)

    @cached_property
    def _variance(self) -> binomial.Table:
        return binomial.tabulate_variance(self.values)


@dataclass(frozen=True)
class PlugIn(FixedDraws):
    """As published: -log2 max(k/N, clip), which charges 66.4 bits for a token never drawn.

    Bias ≈ q / (2 N p ln 2) for p >> 1/N and ≈ q^N (66.4 + log2 p) for p <~ 1/N, where q = 1 - p
    (Tevet et al., NAACL 2019, algorithm 1, and its released code).
    """

    clip: float = 1e-20
    name: ClassVar[str] = "plug-in"

    @cached_property
    def values(self) -> Array:
        """-log2 max(k/N, clip)."""
        return surprisal(np.maximum(np.arange(self.draws + 1) / self.draws, self.clip))


@dataclass(frozen=True)
class Smoothed(FixedDraws):
    """Add-a: -log2 (k + a) / (N + a |V|); the sign of its bias depends on a, N and p."""

    alphabet_size: int
    pseudocount: float = 0.5
    name: ClassVar[str] = "smoothed"

    @cached_property
    def values(self) -> Array:
        """-log2 (k + a) / (N + a |V|)."""
        total = self.draws + self.pseudocount * self.alphabet_size
        return surprisal((np.arange(self.draws + 1) + self.pseudocount) / total)


@dataclass(frozen=True)
class Harmonic(FixedDraws):
    """(H_N - H_k) / ln 2: inverse binomial sampling averaged over all orders of the same N draws.

    Expectation Σ_{j<=N} q^j / j nats with q = 1 - p, hence a bias that is never above 0 and tiny
    unless p <~ 1/N.
    """

    name: ClassVar[str] = "harmonic"

    @cached_property
    def values(self) -> Array:
        """(H_N - H_k) / ln 2."""
        counts = np.arange(self.draws + 1)
        return (harmonic_number(self.draws) - harmonic_number(counts)) / LN2

    def bias(self, p: ArrayLike) -> Array:
        """-Σ_{j>N} q^j / j nats."""
        return np.minimum(super().bias(p), 0)

    def estimated_variance(self, counts: ArrayLike) -> Array:
        """Σ_{k<j<=N} 1/j² nats²; its mean is at least the variance, and equal to it for Np >> 1.

        It is f(k)² minus the unbiased estimate of the first N terms of ln² p = Σ_n 2 H_{n-1} q^n/n.
        """
        counts = checked_counts(counts, self.draws)
        return (inverse_squares(self.draws) - inverse_squares(counts)) / LN2**2
