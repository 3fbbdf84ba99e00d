"""Estimators of -log2 p that draw until the first hit: inverse binomial sampling (IBS).

A first hit K is the number of draws up to and including the first hit, NEVER_HIT if the cap came
first; q = 1 - p; H_n is the n-th harmonic number.
Reference: van Opheusden, Acerbi & Ma, PLOS Computational Biology 16(12): e1008483, 2020.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray
from scipy.special import spence

from ganlm import binomial
from ganlm.fixed_draws import LN2, Array, Harmonic, harmonic_number, inverse_squares, surprisal

NEVER_HIT = 0


@dataclass(frozen=True, kw_only=True)
class Ibs:
    """Draw until the first hit K and estimate H_{K-1} / ln 2.

    With a cap of M draws, H_{M-1} if none of them hits: expectation Σ_{j<M} q^j / j nats, so the
    bias is -Σ_{j>=M} q^j / j. Without a cap unbiased, variance Li2(q) <= π²/6 nats², 1/p draws.
    """

    cap: int | None = None
    name: ClassVar[str] = "ibs"
    unit: ClassVar[str] = "bits"
    inputs: ClassVar[tuple[str, ...]] = ("first_hits",)

    def __post_init__(self) -> None:
        if self.cap is not None and self.cap < 1:
            raise ValueError(f"cap must be at least 1, not {self.cap}.")

    def estimate(self, first_hits: ArrayLike) -> Array:
        """Bits from the first hits."""
        return harmonic_number(self._misses(first_hits)) / LN2

    def estimated_variance(self, first_hits: ArrayLike) -> Array:
        """Σ_{j<min(K, M)} 1/j² nats²: unbiased without a cap, on average too large with one."""
        return inverse_squares(self._misses(first_hits)) / LN2**2

    def expectation(self, p: ArrayLike) -> Array:
        """Σ_{j<M} q^j / j nats."""
        return surprisal(p) if self.cap is None else self._mean(p) / LN2

    def bias(self, p: ArrayLike) -> Array:
        """-Σ_{j>=M} q^j / j nats."""
        if self.cap is None:
            return np.zeros(np.shape(p))
        return np.minimum(self.expectation(p) - surprisal(p), 0)

    def variance(self, p: ArrayLike) -> Array:
        """Li2(q) nats² without a cap (at p = 0 its limit), else from the exact moments."""
        if self.cap is None:
            return spence(np.asarray(p, dtype=float)) / LN2**2
        return np.maximum(self._square(p) - self._mean(p) ** 2, 0) / LN2**2

    def expected_draws(self, p: ArrayLike) -> Array:
        """(1 - q^M) / p."""
        return _expected_draws_after(0, self.cap, p)

    def _misses(self, first_hits: ArrayLike) -> NDArray[np.int64]:
        """Misses that count: K - 1, or M - 1 for a position that was never hit."""
        hits = np.asarray(first_hits)
        if self.cap is None:
            if np.any(hits < 1):
                raise ValueError("a position was never hit: give ibs the cap that stopped it.")
            return hits - 1
        if np.any((hits < 0) | (hits > self.cap)):
            raise ValueError(
                f"first hits must lie between 1 and the cap of {self.cap}, or be {NEVER_HIT} for never."
            )
        return np.where(hits == NEVER_HIT, self.cap, hits) - 1

    @cached_property
    def _mean(self) -> binomial.Table:
        return _table(_mean_coefficients(self.cap - 1))

    @cached_property
    def _square(self) -> binomial.Table:
        return _table(_square_coefficients(self.cap - 1))


@dataclass(frozen=True, kw_only=True)
class RbIbs(Ibs):
    """Rao-Blackwellised IBS: N draws with k hits give H_N - H_k; if k = 0, draw on as `ibs` does.

    Unbiased without a cap; with a cap of M > N draws in all it has the expectation of `ibs` with
    that cap. N = 1 is `ibs`, M = N + 1 is `harmonic`. First hits count from the first of the N
    draws and matter only where the count is 0.
    """

    draws: int
    name: ClassVar[str] = "rb-ibs"
    inputs: ClassVar[tuple[str, ...]] = ("counts", "first_hits")

    def __post_init__(self) -> None:
        if self.cap is not None and self.cap <= self.draws:
            raise ValueError(f"rb-ibs needs a cap above its {self.draws} draws, not {self.cap}.")

    def estimate(self, counts: ArrayLike, first_hits: ArrayLike) -> Array:
        """Bits from the counts among the first N draws and, where those are 0, the first hits."""
        late = self._late_hits(counts, first_hits)
        return np.where(late == 1, self._harmonic.estimate(counts), super().estimate(late))

    def estimated_variance(self, counts: ArrayLike, first_hits: ArrayLike) -> Array:
        """Σ_{k<j<=N} 1/j² nats² if k > 0, else Σ_{j<min(K, M)} 1/j²; unbiased without a cap."""
        late = self._late_hits(counts, first_hits)
        early = self._harmonic.estimated_variance(counts)
        return np.where(late == 1, early, super().estimated_variance(late))

    def variance(self, p: ArrayLike) -> Array:
        """Variance of `ibs` less what averaging over the orders of the first N draws removes."""
        return np.maximum(super().variance(p) - self._removed(p) / LN2**2, 0)

    def expected_draws(self, p: ArrayLike) -> Array:
        """N + (q^N - q^M) / p."""
        return self.draws + _expected_draws_after(self.draws, self.cap, p)

    def _late_hits(self, counts: ArrayLike, first_hits: ArrayLike) -> NDArray[np.int64]:
        """First hits after the first N draws, and 1 where one of those hit."""
        hit_early = np.asarray(counts) > 0
        hits = np.asarray(first_hits)
        if np.any(~hit_early & (hits != NEVER_HIT) & (hits <= self.draws)):
            raise ValueError(
                f"a position without a hit in {self.draws} draws has its first hit among them: "
                "count first hits from the first draw."
            )
        return np.where(hit_early, 1, hits)

    @cached_property
    def _harmonic(self) -> Harmonic:
        return Harmonic(self.draws)

    @cached_property
    def _removed(self) -> binomial.Table:
        """Table of E H²_{min(K, N+1)-1} - E (H_N - H_k)², a mean of variances given k."""
        ordered = _square_coefficients(self.draws)
        averaged = (self._harmonic.values * LN2) ** 2
        return binomial.tabulate(
            lambda p: polyval(1 - p, ordered) - binomial.expectation(averaged, p),
            self.draws,
            low=0.0,
            high=averaged[0],
        )


def _mean_coefficients(n: int) -> Array:
    """Coefficients of q^j, j <= n, in E H_{min(K, n+1)-1}: 1/j."""
    return np.concatenate([[0.0], 1 / np.arange(1, n + 1)])


def _square_coefficients(n: int) -> Array:
    """Coefficients of q^j, j <= n, in E H²_{min(K, n+1)-1}: H_j² - H_{j-1}²."""
    return np.diff(harmonic_number(np.arange(n + 1)) ** 2, prepend=0.0)


def _table(coefficients: Array) -> binomial.Table:
    """Table of Σ_j c_j q^j, whose Bernstein coefficients are means given the hits in n draws."""
    return binomial.tabulate(
        lambda p: polyval(1 - p, coefficients),
        coefficients.size - 1,
        low=0.0,
        high=coefficients.sum(),
    )


def _expected_draws_after(start: int, stop: int | None, p: ArrayLike) -> Array:
    """Σ_{start<=j<stop} q^j = (q^start - q^stop) / p: draws after the first `start`, which missed."""
    p = np.asarray(p, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        begun = (1 - p) ** start
        if stop is None:
            return begun / p
        more = stop - start
        return np.where(p > 0, begun * -np.expm1(more * np.log1p(-p)) / p, more)
