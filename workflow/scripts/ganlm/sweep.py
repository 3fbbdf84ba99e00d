"""Bits against the length of the window.

A window restarts a model's state, so a longer one gives it more to go by. Where bits go up again, the model
does worse on longer texts than it was made for. The choice of a window belongs to the validation part.
"""

import math
from collections.abc import Callable

from ganlm.summary import BEST_FIRST, find


def curve(results: list[dict]) -> list[dict]:
    """One point per window, shortest first: exact bits where they are known, else the best estimate.

    `from_below` is the harmonic estimate where that best one is a mean softmax, whose upward error grows with
    the window: the truth is between the two.
    """
    windows = sorted({int(result["protocol"].removeprefix("window-")) for result in results})
    return [{"window": window} | _point(results, f"window-{window}") for window in windows]


def _point(results: list[dict], protocol: str) -> dict:
    found = next(filter(None, (find(results, protocol, estimator) for estimator in BEST_FIRST)), None)
    if found is None:
        raise ValueError(
            f"none of {', '.join(BEST_FIRST)} is in evaluation.estimators: the sweep shows one of them"
        )
    other = find(results, protocol, "harmonic") if found["estimator"] == "mean-softmax" else None
    point = {key: found[key] for key in ("estimator", "mean", "low", "high", "tokens")}
    return point | {"from_below": other["mean"] if other else math.nan}


def choice(results: list[dict]) -> dict:
    """The window with the fewest bits, of equals the shortest, and the curve that it was chosen from.

    `window` goes by the estimate that the paper publishes. Of a generator with noise that is a mean softmax,
    whose error favours short windows, so `window_from_below` goes by the harmonic estimate, whose error
    favours long ones; elsewhere the two are the same.
    """
    points = curve(results)
    return {
        "window": _fewest(points, lambda point: point["mean"]),
        "window_from_below": _fewest(points, _lowest),
        "points": points,
    }


def _lowest(point: dict) -> float:
    """The least that the bits at a point may be, but for chance."""
    return point["mean"] if math.isnan(point["from_below"]) else point["from_below"]


def _fewest(points: list[dict], bits: Callable[[dict], float]) -> int:
    return min(points, key=lambda point: (bits(point), point["window"]))["window"]
