"""How many draws: the paper's rule on a subset of positions, and what a pilot says in bits."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Self

import numpy as np

from ganlm.estimators import Harmonic
from ganlm.generator import Explicit, Latent, Sampled, checked_distributions
from ganlm.inverse_binomial import NEVER_HIT
from ganlm.noise_groups import walk
from ganlm.planner import Pilot, pilot_from_first_hits, pilot_from_probabilities, plan
from ganlm.prefix_tree import PrefixTree
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

STEPS_PER_WALK = 10


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
    """The curve, how far from the worst case the model is, and what a plan in bits needs, if there is one.

    `largest_variance` is the mean over positions of the largest p (1 - p), `window_variance` the variance
    between windows of their mean bits.
    """

    curve: ConvergenceCurve
    largest_variance: float
    pilot: Pilot | None = None
    window_variance: float = 0.0


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
    return Result(curve, _largest_variance(flat), pilot, _variance(everywhere.mean(axis=1)))


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
        _largest_variance(frequencies),
        pilot_from_first_hits(first, draws),
        _variance_of_means(bits, window),
    )


def latent(model: Latent, tokens: np.ndarray, window: int, settings: Settings, key: tuple) -> Result:
    """The mean softmax of real noise draws, of which every window has its own, as published.

    Shared by all windows, as in the evaluation, they would make the curve so rough that it stays below the
    threshold far too late. There is no plan: it is about draws that every position has for itself.
    """
    windows, offsets = pilot_windows(tokens, window, settings)
    draws = settings.max_draws - settings.max_draws % settings.alpha
    total = np.zeros((windows[:, offsets].size, model.vocabulary))

    def increments() -> Iterator[np.ndarray]:
        for walked in count():
            for sums in _softmax_sums(model, windows, offsets, settings.alpha, (*key, walked)):
                np.add(total, sums, out=total)
                yield sums

    curve = curve_from_increments(increments(), settings.alpha, draws)
    return Result(curve, _largest_variance(total / draws))


def _softmax_sums(
    model: Latent, windows: np.ndarray, offsets: np.ndarray, alpha: int, key: tuple
) -> np.ndarray:
    """Sums of the softmaxes of `alpha` draws at each position looked at, STEPS_PER_WALK times."""
    draws = STEPS_PER_WALK * alpha
    sums = np.empty((STEPS_PER_WALK, len(windows), len(offsets), model.vocabulary))
    columns = {int(offset): column for column, offset in enumerate(offsets)}
    for row, window in enumerate(windows):
        answers = walk(model, PrefixTree.of(window[None]), draws, keyed_rng(*key, row, "noise"))
        for position, answer in enumerate(answers):
            if position in columns:
                p = checked_distributions(answer.p, draws, model.vocabulary)
                sums[:, row, columns[position]] = p.reshape(STEPS_PER_WALK, alpha, -1).sum(axis=1)
    return sums.reshape(STEPS_PER_WALK, -1, model.vocabulary)


def _histogram(ids: np.ndarray, vocabulary: int) -> np.ndarray:
    """How often each token was drawn at each position."""
    cells = np.arange(len(ids))[:, None] * vocabulary + ids
    return np.bincount(cells.ravel(), minlength=len(ids) * vocabulary).reshape(len(ids), vocabulary)


def summary(result: Result, settings: Settings, vocabulary: int, window: int, positions: int) -> dict:
    """What the rule chooses, what it hides, and the plan for `positions` positions, if there is one."""
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
        "plan": _plan(result, settings, window, positions),
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


def _plan(result: Result, settings: Settings, window: int, positions: int) -> dict | None:
    if result.pilot is None:
        return None
    return asdict(plan(result.pilot, settings.half_width, positions, result.window_variance, window))


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
