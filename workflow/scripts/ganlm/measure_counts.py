"""Bits from a table of counts that somebody else drew: fixed-N estimators only."""

from collections.abc import Iterator

import numpy as np

from ganlm.generator import GeneratorError
from ganlm.measurement import SAMPLE, Row, Task
from ganlm.models.counts import CountTable
from ganlm.resume import Journal

FIXED_DRAWS = ("plug-in", "smoothed", "harmonic")


def measure(model: CountTable, task: Task, journal: Journal, workers: int) -> list[Row]:  # noqa: ARG001
    """The rows of the task's blocks that the table covers whole; there is nothing to resume."""
    rows = list(_rows(model, task))
    if not rows:
        raise GeneratorError(f"{model.path} covers no block of {task.settings.block} tokens whole")
    return rows


def _rows(model: CountTable, task: Task) -> Iterator[Row]:
    table = model.checked(task)
    for block in task.blocks:
        start, stop = task.grid.span(int(block))
        counts = table[start:stop]
        if np.any(counts < 0):
            continue
        for name in task.settings.estimators:
            if name in FIXED_DRAWS:
                estimator = task.estimator(name, model.draws)
                yield from task.rows(
                    SAMPLE, name, model.draws, [int(block)], estimator.estimate(counts),
                    variance=estimator.estimated_variance(counts), drawn=model.draws, never_hit=counts == 0,
                )  # fmt: skip
