"""How many draws per position are enough: inequalities, and the published convergence rule.

The inequalities answer for the largest error of one estimated distribution. The convergence rule
measures how far the running estimate moves, not how far it is from the truth. What a table of bits
per character needs is neither, but the half-width of an average over positions: see `planner`.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr
from scipy.stats import norm

Array = NDArray[np.float64]


def hoeffding_draws(gamma: float, epsilon: float, alphabet_size: int = 1) -> int:
    """ln(2|V|/ε) / 2γ²: every |estimate - p_v| < γ with probability 1 - ε (Hoeffding 1963 + union).

    The published bound. An alphabet size of 1 asks for the true token only.
    """
    return math.ceil(math.log(2 * alphabet_size / epsilon) / (2 * gamma**2))


def hoeffding_gamma(draws: int, epsilon: float, alphabet_size: int = 1) -> float:
    """√(ln(2|V|/ε) / 2N): the accuracy that so many draws guarantee, by the same inequality."""
    return math.sqrt(math.log(2 * alphabet_size / epsilon) / (2 * draws))


def bernstein_draws(gamma: float, epsilon: float, p: float, alphabet_size: int = 1) -> int:
    """ln(2|V|/ε) (2p(1-p) + 2γ/3) / γ², if every p_v <= p <= 1/2 (Bernstein 1924 + union)."""
    spread = 2 * p * (1 - p) + 2 * gamma / 3
    return math.ceil(math.log(2 * alphabet_size / epsilon) * spread / gamma**2)


def chernoff_draws(gamma: float, epsilon: float, p: float, alphabet_size: int = 1) -> int:
    """ln(2|V|/ε) / min KL(p ± γ ‖ p), if every p_v <= p <= 1/2 (Chernoff 1952 + union)."""
    shifted = np.array([q for q in (p + gamma, p - gamma) if 0 <= q <= 1])
    divergence = rel_entr(shifted, p) + rel_entr(1 - shifted, 1 - p)
    return math.ceil(math.log(2 * alphabet_size / epsilon) / divergence.min())


def empirical_bernstein_draws(gamma: float, epsilon: float, variance: float, alphabet_size: int = 1) -> int:
    """Smallest N with √(2 variance L/(N-1)) + 7L/3(N-1) <= γ, L = ln(4|V|/ε), on sample variances.

    Maurer & Pontil, COLT 2009, theorem 4, for both sides, + union.
    """
    log_term = math.log(4 * alphabet_size / epsilon)
    linear = math.sqrt(2 * variance * log_term)
    root = (linear + math.sqrt(linear**2 + 28 / 3 * gamma * log_term)) / (2 * gamma)
    return math.ceil(1 + root**2)


def dkw_draws(gamma: float, epsilon: float) -> int:
    """2 ln(2/ε) / γ², for any |V|: every p_v is a difference of two cdf values within γ/2.

    Dvoretzky, Kiefer & Wolfowitz 1956, with Massart's constant (1990).
    """
    return math.ceil(2 * math.log(2 / epsilon) / gamma**2)


def weissman_draws(gamma: float, epsilon: float, alphabet_size: int) -> int:
    """ln((2^|V| - 2)/ε) / 2γ²: total variation below γ, i.e. L1 below 2γ (Weissman et al. 2003)."""
    log_subsets = alphabet_size * math.log(2) + math.log1p(-(2.0 ** (1 - alphabet_size)))
    return math.ceil((log_subsets - math.log(epsilon)) / (2 * gamma**2))


def anytime_draws(gamma: float, epsilon: float, alphabet_size: int = 1) -> int:
    """N at which an interval valid at every N at once is as narrow as ±γ (Robbins 1970 + union).

    The normal mixture of parameter N/4m gives N = (1 + 1/m) ln((1 + m)|V|²/ε²) / 4γ²; m minimises.
    """

    def scaled(log_m: float) -> float:
        m = math.exp(log_m)
        return (1 + 1 / m) * (math.log1p(m) + 2 * math.log(alphabet_size / epsilon))

    return math.ceil(minimize_scalar(scaled, bracket=(0.0, 5.0)).fun / (4 * gamma**2))


def normal_draws(gamma: float, epsilon: float, p: float = 0.5) -> int:
    """z² p(1-p) / γ², z the 1 - ε/2 quantile: one token by the central limit theorem, no bound."""
    return math.ceil(norm.isf(epsilon / 2) ** 2 * p * (1 - p) / gamma**2)


@dataclass(frozen=True)
class ConvergenceCurve:
    """The published rule's curve and what it hides, at N = alpha, 2 alpha, ...

    `step` is E(N), the mean over positions of max_v |G_N - G_{N-alpha}|, where G_0 = 0 as in the
    released code; `error` is the mean of max_v |G_N - p|, None where p is unknown.
    """

    alpha: int
    draws: NDArray[np.int64]
    step: Array
    error: Array | None
    positions: int


def multinomial_increments(
    probabilities: ArrayLike, alpha: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Counts of alpha further draws at every position, without end, for a model with known rows."""
    rows = np.asarray(probabilities, dtype=float)
    rows = rows / rows.sum(axis=-1, keepdims=True)
    while True:
        yield rng.multinomial(alpha, rows)


def curve_from_increments(
    increments: Iterable[ArrayLike], alpha: int, n_max: int, probabilities: ArrayLike | None = None
) -> ConvergenceCurve:
    """The curve of one running estimate, fed alpha draws per position at a time.

    An increment holds the counts (or sums of softmaxes) of alpha draws, shaped (positions, |V|).
    Memory is a few such arrays, whatever n_max.
    """
    draws = np.arange(alpha, n_max + 1, alpha)
    total: Array | float = 0.0
    steps: list[float] = []
    errors: list[float] = []
    for n, increment in zip(draws, increments, strict=False):
        before = total / max(n - alpha, 1)
        total = total + np.asarray(increment, dtype=float)
        now = total / n
        steps.append(np.abs(now - before).max(axis=1).mean())
        if probabilities is not None:
            errors.append(np.abs(now - probabilities).max(axis=1).mean())
    if not len(steps) == draws.size > 0:
        raise ValueError(f"{n_max} draws in steps of {alpha} need {draws.size} increments, not {len(steps)}.")
    error = None if probabilities is None else np.array(errors)
    return ConvergenceCurve(alpha, draws, np.array(steps), error, len(total))


def convergence_curve(
    probabilities: ArrayLike, alpha: int, n_max: int, rng: np.random.Generator
) -> ConvergenceCurve:
    """The curve of a model whose rows (positions, |V|) are known: one pass, then multinomials."""
    increments = multinomial_increments(probabilities, alpha, rng)
    return curve_from_increments(increments, alpha, n_max, probabilities)


def chosen_n(curve: ConvergenceCurve, threshold: float) -> int | None:
    """Smallest N from which the curve stays below the threshold to its end; None if there is none.

    One dip below is not convergence: see `first_below` for the looser reading.
    """
    above = np.flatnonzero(curve.step >= threshold)
    start = above[-1] + 1 if above.size else 0
    return int(curve.draws[start]) if start < curve.draws.size else None


def first_below(curve: ConvergenceCurve, threshold: float) -> int | None:
    """Smallest N at which the curve is below the threshold; None if it never is."""
    below = np.flatnonzero(curve.step < threshold)
    return int(curve.draws[below[0]]) if below.size else None


@dataclass(frozen=True)
class ConvergenceLaw:
    """E(N) = alpha c / N, which every model obeys: the slope of log E in log N, and c.

    G_N - G_{N-alpha} is alpha/N times (mean of the last alpha draws - G_{N-alpha}), so the slope is
    -1, c is the mean max_v |mean of alpha draws - p|, and the rule's N is alpha c / threshold.
    """

    alpha: int
    slope: float
    constant: float

    def crossing(self, threshold: float) -> float:
        """Where the law meets the threshold."""
        return self.alpha * self.constant / threshold


def fit_law(curve: ConvergenceCurve, from_draws: int = 100) -> ConvergenceLaw:
    """Least squares for the slope, the mean of E(N) N / alpha for c, from `from_draws` on.

    A generator that does not vary has steps of 0, hence no slope (NaN).
    """
    fitted = curve.draws >= from_draws
    if fitted.sum() < 2:
        raise ValueError(f"the law needs two points at or beyond N = {from_draws}: raise n_max.")
    n, step = curve.draws[fitted], curve.step[fitted]
    if not step.all():
        return ConvergenceLaw(curve.alpha, math.nan, float((step * n / curve.alpha).mean()))
    slope = np.polyfit(np.log(n), np.log(step), 1)[0]
    return ConvergenceLaw(curve.alpha, float(slope), float((step * n / curve.alpha).mean()))
