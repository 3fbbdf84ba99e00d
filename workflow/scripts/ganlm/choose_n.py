"""How many draws: the paper's rule on a subset of positions, and what a pilot says in bits."""

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
    chosen_n,
    convergence_curve,
    curve_from_increments,
    dkw_draws,
    first_below,
    fit_law,
    hoeffding_draws,
    normal_draws,
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
    """The curve, the harmonic bits at each of the pilot's positions, and the text's own noise.

    `bits` has a row per window. `window_variance` is the variance between windows of their mean bits.
    """

    curve: ConvergenceCurve
    pilot: Pilot
    bits: np.ndarray
    window_variance: float


def pilot_windows(tokens: np.ndarray, window: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Windows spread evenly over the text, and the offsets at which each is looked at."""
    whole = len(tokens) // window
    if whole == 0:
        raise ValueError(f"the test part has {len(tokens):,} tokens, less than one window of {window:,}")
    rows = min(settings.windows, whole)
    starts = np.arange(rows) * whole // rows * window
    stride = max(1, rows * window // settings.positions)
    return tokens[starts[:, None] + np.arange(window)].astype(np.int64), np.arange(0, window, stride)


def explicit(model: Explicit, tokens: np.ndarray, window: int, settings: Settings, key: tuple) -> Result:
    """One pass gives the distributions; the draws are multinomial increments."""
    windows, offsets = pilot_windows(tokens, window, settings)
    stride = int(offsets[1]) if len(offsets) > 1 else window
    rows = np.stack([p for _, p in model.distributions(windows, stride)], axis=1)
    gold = np.take_along_axis(rows, windows[:, offsets, None], axis=2)[:, :, 0]
    flat = rows.reshape(-1, rows.shape[-1])
    curve = convergence_curve(flat, settings.alpha, settings.max_draws, keyed_rng(*key))
    harmonic = Harmonic(settings.max_draws)
    everywhere = harmonic.expectation(np.exp2(-model.surprisal(model.start(len(windows)), windows)[0]))
    pilot = pilot_from_probabilities(gold.ravel(), settings.max_draws)
    return Result(curve, pilot, harmonic.expectation(gold), _variance(everywhere.mean(axis=1)))


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
    return Result(curve, pilot_from_first_hits(first, draws), bits, _variance_of_means(bits, window))


def _histogram(ids: np.ndarray, vocabulary: int) -> np.ndarray:
    """How often each token was drawn at each position."""
    cells = np.arange(len(ids))[:, None] * vocabulary + ids
    return np.bincount(cells.ravel(), minlength=len(ids) * vocabulary).reshape(len(ids), vocabulary)


def summary(result: Result, settings: Settings, vocabulary: int, window: int, positions: int) -> dict:
    """What the rule chooses, what it hides, and the plan for `positions` positions."""
    curve, law = result.curve, fit_law(result.curve)
    return {
        "draws": chosen_n(curve, settings.threshold),
        "first_below": first_below(curve, settings.threshold),
        "threshold": settings.threshold,
        "alpha": settings.alpha,
        "positions": curve.positions,
        "slope": law.slope,
        "constant": law.constant,
        "crossing": law.crossing(settings.threshold),
        "bounds": _bounds(settings, vocabulary),
        "plan": asdict(_plan(result, settings, window, positions)),
    }


def _bounds(settings: Settings, vocabulary: int) -> dict[str, int]:
    """Draws per position for an error below the threshold, except with probability epsilon."""
    gamma, epsilon = settings.threshold, settings.epsilon
    return {
        "hoeffding": hoeffding_draws(gamma, epsilon, vocabulary),
        "dkw": dkw_draws(gamma, epsilon),
        "weissman": weissman_draws(gamma, epsilon, vocabulary),
        "anytime": anytime_draws(gamma, epsilon, vocabulary),
        "gold token only, hoeffding": hoeffding_draws(gamma, epsilon),
        "gold token only, normal": normal_draws(gamma, epsilon),
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
