"""One row of a table from several trainings of the same model that differ in their seed alone."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from ganlm.shared_draws import Component, degrees_of_freedom
from ganlm.summary import LABELS

AVERAGED = ("draws_per_token", "never_hit_share")


def pooled(summaries: Sequence[dict], row: str) -> dict:
    """The results that all seeds have, each averaged over them; one seed stays as it is."""
    if len(summaries) == 1:
        return summaries[0] | {"model": row}
    by_labels = [{_labels(result): result for result in summary["results"]} for summary in summaries]
    shared = [labels for labels in by_labels[0] if all(labels in found for found in by_labels)]
    return {
        "model": row,
        "results": [over_seeds([found[labels] for found in by_labels]) for labels in shared],
    }


def over_seeds(results: Sequence[dict]) -> dict:
    """The mean of k seeds, their standard deviation as `spread`, and an interval for their expectation.

    All seeds read the same text, so their errors of the text and of drawing are taken as one, the mean e of
    their standard errors; the errors of training are independent, s²/k. The interval is mean ± t √(s²/k + e²)
    with Satterthwaite's degrees of freedom from the k - 1 of the seeds and those of the fewest blocks.
    """
    first, count = results[0], len(results)
    means = np.array([_known(result["mean"]) for result in results])
    errors = np.array([_known(result["standard_error"]) for result in results])
    blocks = min(result["blocks"] for result in results)
    training = Component(float(means.var(ddof=1)) / count, count - 1)
    shared = Component(float(errors.mean()) ** 2, max(blocks - 1, 1))
    error = float(np.sqrt(training.variance + shared.variance))
    half = error * float(stdtrit(degrees_of_freedom([training, shared]), 0.5 + first["level"] / 2))
    mean, least = float(means.mean()), 0.0 if first["unit"] == "bits" else -np.inf
    return first | {
        "mean": mean,
        "low": max(mean - half, least),
        "high": mean + half,
        "standard_error": error,
        "tokens": min(result["tokens"] for result in results),
        "seeds": count,
        "spread": float(means.std(ddof=1)),
        **{key: float(np.mean([result[key] for result in results])) for key in AVERAGED},
    }


def _known(value: float | None) -> float:
    """A result file has null where a number is not finite."""
    return np.nan if value is None else value


def _labels(result: dict) -> tuple:
    return tuple(result[label] for label in LABELS)
