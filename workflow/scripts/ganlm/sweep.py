"""Bits against the length of the window.

A window restarts a model's state, so a longer one gives it more to go by. Where bits go up again, the model
does worse on longer texts than it was made for. The choice of a window belongs to the validation part.
"""

from ganlm.summary import BEST_FIRST, find


def curve(results: list[dict]) -> list[dict]:
    """One point per window, shortest first: exact bits where they are known, else the best estimate."""
    windows = sorted({int(result["protocol"].removeprefix("window-")) for result in results})
    return [{"window": window} | _point(results, f"window-{window}") for window in windows]


def _point(results: list[dict], protocol: str) -> dict:
    found = next(filter(None, (find(results, protocol, estimator) for estimator in BEST_FIRST)), None)
    if found is None:
        raise ValueError(
            f"none of {', '.join(BEST_FIRST)} is in evaluation.estimators: the sweep shows one of them"
        )
    return {key: found[key] for key in ("estimator", "mean", "low", "high", "tokens")}


def choice(results: list[dict]) -> dict:
    """The window with the fewest bits, of equals the shortest, and the curve that it was chosen from."""
    points = curve(results)
    best = min(points, key=lambda point: (point["mean"], point["window"]))
    return {"window": best["window"], "points": points}
