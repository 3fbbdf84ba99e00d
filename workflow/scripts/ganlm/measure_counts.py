"""Bits from a table of counts that somebody else drew: fixed-N estimators only."""

from collections.abc import Iterator, Sequence

import numpy as np

from ganlm.bins import Tally
from ganlm.generator import GeneratorError
from ganlm.measurement import FIXED_DRAWS, SAMPLE, Row, Task
from ganlm.models.counts import CountTable
from ganlm.resume import Journal


def measure(model: CountTable, task: Task, journal: Journal, workers: int) -> list[Row]:  # noqa: ARG001
    """The rows of the task's blocks that the table covers whole; there is nothing to resume."""
    table = model.checked(task)
    covered = [block for block in range(len(task.grid)) if np.all(table[slice(*task.grid.span(block))] >= 0)]
    if not covered:
        raise GeneratorError(f"{model.path} covers no block of {task.settings.block} tokens whole")
    mine, tally = [block for block in covered if block in task.blocks], Tally(task)
    for block in mine:
        tally.add_counted([block], table[slice(*task.grid.span(block))], model.draws)
    return [*_rows(model, task, table, mine), *tally.rows()]


def _rows(model: CountTable, task: Task, table: np.ndarray, blocks: Sequence[int]) -> Iterator[Row]:
    for block in blocks:
        counts = table[slice(*task.grid.span(block))]
        for name in task.settings.estimators:
            if name in FIXED_DRAWS:
                estimator = task.estimator(name, model.draws)
                yield from task.rows(
                    SAMPLE, name, model.draws, [block], estimator.estimate(counts),
                    variance=estimator.estimated_variance(counts), drawn=model.draws, never_hit=counts == 0,
                )  # fmt: skip
