"""Expectations of functions of a binomial count, for millions of probabilities at once.

E f(K) with K ~ Binomial(N, p) is a polynomial of degree N in p whose Bernstein coefficients are
f(0), ..., f(N). In the angle φ with p = sin²(φ/2) it becomes a cosine series, and a short one: at a
complex angle φ + iη the Bernstein basis satisfies Σ_k |b_k| = cosh(η)^N <= exp(Nη²/2), so with
R = (max f - min f)/2 Cauchy's inequalities bound

    the m-th coefficient          by 2 R exp(-m²/2N)         (η = m/N),
    the fourth derivative in φ    by 24 R e² (N/4)²          (η = 2/√N).

About 9√N exact evaluations therefore determine the polynomial, a fast cosine transform spreads them
over a uniform grid of angles, and cubic Hermite pieces, off by at most h⁴/384 times the fourth
derivative, do the rest. The cost per probability is one table look-up, whatever N is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct, dst, next_fast_len
from scipy.interpolate import CubicHermiteSpline
from scipy.stats import binom

Polynomial = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def expectation(values: ArrayLike, p: ArrayLike) -> NDArray[np.float64]:
    """E f(K) = Σ_k Binom(k; N, p) f(k), term by term; `values` holds f(0), ..., f(N).

    Terms with |k - Np| > √(N ln(2e18) / 2) are left out: their probabilities sum to less than 1e-18
    (Hoeffding's inequality). A p below 1e-200 counts as 0, since SciPy's pmf overflows there.
    """
    values = np.asarray(values, dtype=float)
    p = np.asarray(p, dtype=float)
    p = np.where(p < 1e-200, 0.0, p)
    draws = values.size - 1
    reach = math.ceil(math.sqrt(draws * math.log(2e18) / 2))
    window = np.arange(-reach, reach + 2)
    sums = []
    for chunk in np.array_split(p.ravel(), max(1, p.size * window.size // 2**17)):
        counts = np.floor(draws * chunk)[:, None].astype(int) + window
        terms = values[counts.clip(0, draws)] * binom.pmf(counts, draws, chunk[:, None])
        sums.append(terms.sum(axis=1))
    return np.concatenate(sums).reshape(p.shape)


@dataclass(frozen=True)
class Table:
    """A polynomial in p on [0, 1], stored as a spline in the angle φ = 2 arcsin √p."""

    spline: CubicHermiteSpline

    def __call__(self, p: ArrayLike) -> NDArray[np.float64]:
        """Look the polynomial up at every p; the pieces are equally long, so that none is searched for."""
        *coefficients, constant = self.spline.c
        scaled = np.arcsin(np.sqrt(np.asarray(p, dtype=float))) * (2 * constant.size / math.pi)
        piece = np.minimum(scaled.astype(np.intp), constant.size - 1)
        offset = (scaled - piece) * (math.pi / constant.size)
        value = 0.0
        for coefficient in coefficients:
            value = (value + coefficient.take(piece, mode="clip")) * offset
        return value + constant.take(piece, mode="clip")


def tabulate(polynomial: Polynomial, degree: int, low: float, high: float, tolerance: float = 1e-9) -> Table:
    """Tabulate a polynomial whose Bernstein coefficients of that degree lie in [low, high].

    The table is off by less than `tolerance` everywhere: half of it is spent on leaving out high
    cosine terms (aliasing doubles their sum Σ_{j>m} 2R exp(-j²/2N), and the spline at most doubles
    it again), half on the spline.
    """
    degree = max(degree, 1)
    radius = max((high - low) / 2, tolerance)
    omitted = 16 * radius * math.sqrt(math.pi * degree / 2) / tolerance
    terms = min(degree, math.ceil(math.sqrt(2 * degree * math.log(omitted))))
    fourth_derivative = 24 * radius * math.exp(2) * (degree / 4) ** 2
    pieces = math.ceil(math.pi * (fourth_derivative / (192 * tolerance)) ** 0.25)
    return Table(_spline(polynomial, terms, next_fast_len(max(pieces, terms + 1), real=True)))


def tabulate_expectation(values: ArrayLike, tolerance: float = 1e-9) -> Table:
    """Table of p -> E f(K), K ~ Binomial(N, p), from f(0), ..., f(N)."""
    values = np.asarray(values, dtype=float)
    return tabulate(lambda p: expectation(values, p), values.size - 1, values.min(), values.max(), tolerance)


def tabulate_variance(values: ArrayLike, tolerance: float = 1e-9) -> Table:
    """Table of p -> Var f(K), K ~ Binomial(N, p), from f(0), ..., f(N).

    With f centred, so that |f| <= R, it is E f(K)² - E f(K) f(K') for a second, independent count K'.
    Given K + K' these terms no longer depend on p and lie in [0, R²] and [-R², R²]: they are the
    Bernstein coefficients of degree 2N.
    """
    values = np.asarray(values, dtype=float)
    centred = values - (values.min() + values.max()) / 2
    bound = centred.max() ** 2

    def variance(p: NDArray[np.float64]) -> NDArray[np.float64]:
        return expectation(centred**2, p) - expectation(centred, p) ** 2

    return tabulate(variance, 2 * (values.size - 1), -bound, 2 * bound, tolerance)


def _spline(polynomial: Polynomial, terms: int, pieces: int) -> CubicHermiteSpline:
    """Interpolate at terms + 1 Chebyshev angles, then resample value and slope on `pieces`."""
    samples = polynomial(np.sin(np.linspace(0, math.pi, terms + 1) / 2) ** 2)
    halved = np.zeros(pieces + 1)
    halved[: terms + 1] = dct(samples, type=1) / (2 * terms)
    halved[terms] /= 2
    values = dct(halved, type=1)
    slopes = np.zeros(pieces + 1)
    slopes[1:-1] = dst(-np.arange(1, pieces) * halved[1:-1], type=1)
    return CubicHermiteSpline(np.linspace(0, math.pi, pieces + 1), values, slopes)
