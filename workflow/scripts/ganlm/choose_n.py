"""How many draws: the paper's rule on a subset of positions, and what a pilot says in bits."""

import math
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from ganlm.estimators import Harmonic
from ganlm.generator import Explicit, Sampled
from ganlm.inverse_binomial import NEVER_HIT
from ganlm.planner import Pilot, Plan, pilot_from_first_hits, pilot_from_probabilities, plan
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.sample_size import (
    ConvergenceCurve,
    anytime_draws,
    bernstein_draws,
    chernoff_draws,
    chosen_n,
    convergence_curve,
    curve_from_increments,
    dkw_draws,
    empirical_bernstein_draws,
    first_below,
    fit_law,
    hoeffding_draws,
    weissman_draws,
)


@dataclass(frozen=True)
class Settings:
    """The `choose_n` block of the config; `threshold` is the paper's gamma'."""

    alpha: int
    threshold: float
    max_draws: int
    windows: int
    positions: int
    half_width: float
    epsilon: float

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From the config."""
        return cls(**{name: block[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Result:
    """The curve, what was seen of the gold tokens, and two sources of noise.

    `window_variance` is the variance between windows of their mean bits, `largest_variance` the mean over
    positions of the largest p (1 - p).
    """

    curve: ConvergenceCurve
    pilot: Pilot
    window_variance: float
    largest_variance: float


def pilot_windows(tokens: np.ndarray, window: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Windows spread evenly over the text, and the offsets at which each is looked at."""
    whole = len(tokens) // window
    if whole == 0:
        raise ValueError(f"the test part has {len(tokens):,} tokens, less than one window of {window:,}")
    rows = min(settings.windows, whole)
    starts = np.arange(rows) * whole // rows * window
    stride = min(window, max(1, rows * window // settings.positions))
    windows = tokens[starts[:, None] + np.arange(window)].astype(np.int64)
    return windows, np.arange(stride // 2, window, stride)


def explicit(model: Explicit, tokens: np.ndarray, window: int, settings: Settings, key: tuple) -> Result:
    """One pass gives the distributions; the draws are multinomial increments."""
    windows, offsets = pilot_windows(tokens, window, settings)
    stride = int(offsets[1] - offsets[0]) if len(offsets) > 1 else window
    rows = np.stack([p for _, p in model.distributions(windows, int(offsets[0]), stride)], axis=1)
    gold = np.take_along_axis(rows, windows[:, offsets, None], axis=2)[:, :, 0]
    flat = rows.reshape(-1, rows.shape[-1])
    curve = convergence_curve(flat, settings.alpha, settings.max_draws, keyed_rng(*key))
    harmonic = Harmonic(settings.max_draws)
    everywhere = harmonic.expectation(np.exp2(-model.surprisal(model.start(len(windows)), windows)[0]))
    pilot = pilot_from_probabilities(gold.ravel(), settings.max_draws, gold.size)
    return Result(curve, pilot, _variance(everywhere.mean(axis=1)), _largest_variance(flat))


def sampled(model: Sampled, tokens: np.ndarray, window: int, settings: Settings, key: tuple) -> Result:
    """Real draws, as many as the curve is long, at every position."""
    windows, offsets = pilot_windows(tokens, window, settings)
    draws = settings.max_draws - settings.max_draws % settings.alpha
    requests = [(row, int(offset), draws) for row in range(len(windows)) for offset in offsets]
    ids = np.stack(model.draw_in_windows(list(windows), requests, keyed_seed(*key)))
    hits = ids == windows[:, offsets].reshape(-1, 1)
    first = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, NEVER_HIT)
    increments = (
        _histogram(ids[:, i : i + settings.alpha], model.vocabulary) for i in range(0, draws, settings.alpha)
    )
    curve = curve_from_increments(increments, settings.alpha, draws)
    bits = Harmonic(draws).estimate(hits.sum(axis=1)).reshape(len(windows), -1)
    frequencies = _histogram(ids, model.vocabulary) / draws
    return Result(
        curve,
        pilot_from_first_hits(first, draws),
        _variance_of_means(bits, window),
        _largest_variance(frequencies),
    )


def _histogram(ids: np.ndarray, vocabulary: int) -> np.ndarray:
    """How often each token was drawn at each position."""
    cells = np.arange(len(ids))[:, None] * vocabulary + ids
    return np.bincount(cells.ravel(), minlength=len(ids) * vocabulary).reshape(len(ids), vocabulary)


def summary(result: Result, settings: Settings, vocabulary: int, window: int, positions: int) -> dict:
    """What the rule chooses, what it hides, and the plan for `positions` positions."""
    curve, law = result.curve, fit_law(result.curve)
    return {
        "estimand": "sample",
        "draws": chosen_n(curve, settings.threshold),
        "first_below": first_below(curve, settings.threshold),
        "threshold": settings.threshold,
        "alpha": settings.alpha,
        "positions": curve.positions,
        "slope": law.slope,
        "constant": law.constant,
        "crossing": law.crossing(settings.threshold),
        "bounds": _bounds(settings, vocabulary, result.largest_variance),
        "plan": asdict(_plan(result, settings, window, positions)),
    }


def _largest_variance(distributions: np.ndarray) -> float:
    """Mean over positions of the largest p (1 - p): how far from the worst case 1/4 the model is."""
    return float((distributions * (1 - distributions)).max(axis=1).mean())


def _bounds(settings: Settings, vocabulary: int, variance: float) -> dict[str, int]:
    """Draws per position for an error below the threshold, except with probability epsilon.

    Bernstein's and Chernoff's hold for a token of the given variance p (1 - p), the others for any.
    """
    gamma, epsilon = settings.threshold, settings.epsilon
    p = max((1 - math.sqrt(max(0.0, 1 - 4 * variance))) / 2, gamma)
    return {
        "hoeffding": hoeffding_draws(gamma, epsilon, vocabulary),
        "dkw": dkw_draws(gamma, epsilon),
        "weissman": weissman_draws(gamma, epsilon, vocabulary),
        "anytime": anytime_draws(gamma, epsilon, vocabulary),
        "bernstein": bernstein_draws(gamma, epsilon, p, vocabulary),
        "chernoff": chernoff_draws(gamma, epsilon, p, vocabulary),
        "empirical bernstein": empirical_bernstein_draws(gamma, epsilon, variance, vocabulary),
        "gold token only": hoeffding_draws(gamma, epsilon),
    }


def _plan(result: Result, settings: Settings, window: int, positions: int) -> Plan:
    return plan(result.pilot, settings.half_width, positions, result.window_variance, window)


def _variance_of_means(bits: np.ndarray, window: int) -> float:
    """Variance of the means of whole windows, from a few positions of each (analysis of variance).

    It is the variance between windows plus that within, over the window's length. With few positions per
    window the first is known only roughly; `choose_n.positions` decides.
    """
    within = np.mean([_variance(row) for row in bits])
    between = max(0.0, _variance(bits.mean(axis=1)) - within / bits.shape[1])
    return float(between + within / window)


def _variance(values: np.ndarray) -> float:
    """Sample variance; a single value tells nothing."""
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
