"""Bits of a generator that only emits draws, each estimator from one and the same stream of draws.

At every position a stream of draws goes on until it has been long enough for every estimator: at least N
draws where an estimator counts hits among N, and until the gold token was hit, at most up to the cap.
Positions that were hit retire, so that the cost is about 1/p draws where p is the gold probability.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ganlm.bins import Tally
from ganlm.estimators import Brier, matching_pairs
from ganlm.generator import Sampled
from ganlm.inverse_binomial import NEVER_HIT, Ibs
from ganlm.measurement import SAMPLE, Row, Task
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.resume import Journal

FIRST_ROUND = 4
PATIENCE = 64
UNTIL_HIT = ("ibs", "rb-ibs")

Draw = Callable[[np.ndarray, int, int], list[np.ndarray]]


@dataclass(frozen=True)
class Statistics:
    """What the estimators need to know of the stream at each position."""

    counts: np.ndarray
    pairs: np.ndarray
    first_hits: np.ndarray


def measure(model: Sampled, task: Task, journal: Journal, workers: int) -> list[Row]:
    """The rows of the task's blocks, `workers` blocks at a time."""
    return journal.run(lambda block: list(_block_rows(model, task, block)), task, workers)


def _block_rows(model: Sampled, task: Task, block: int) -> Iterator[Row]:
    gold, draw = _positions(model, task, block)
    names = [name for name in task.settings.estimators if name != "mean-softmax"]
    minimum = task.settings.draws if set(names) - {"ibs"} else 0
    cap = task.estimator("rb-ibs").cap if "rb-ibs" in names else task.settings.cap
    stream = _run(draw, gold, minimum, cap if set(names) & set(UNTIL_HIT) else 0)
    for name in names:
        yield from _rows(task, SAMPLE, name, block, stream)
    if minimum:
        tally = Tally(task)
        tally.add_counted([block], stream.counts, minimum)
        yield from tally.rows()
    if task.settings.mixture:
        yield from _mixture_rows(task, block, gold, _mixed(draw, task, block))


def _mixture_rows(task: Task, block: int, gold: np.ndarray, draw: Draw) -> Iterator[Row]:
    """Unbiased bits of (1 - l) G + l Uniform, by `ibs` without a cap.

    Every token has a probability of at least l / |V|, so the chance that drawing does not end within the
    limit is below exp(-PATIENCE).
    """
    limit = math.ceil(PATIENCE * task.vocabulary / task.settings.mixture)
    first_hits = _run(draw, gold, 0, limit).first_hits
    estimator = Ibs()
    yield from task.rows(
        task.settings.mixture_estimand, estimator.name, 0, [block], estimator.estimate(first_hits),
        variance=estimator.estimated_variance(first_hits), drawn=first_hits,
    )  # fmt: skip


def _positions(model: Sampled, task: Task, block: int) -> tuple[np.ndarray, Draw]:
    """The gold tokens of a block, and a function that draws at some of its positions."""
    window = task.protocol.window
    start, stop = task.grid.span(block)
    first, last = start // window, (stop - 1) // window
    windows = [task.tokens[w * window : (w + 1) * window] for w in range(first, last + 1)]
    positions = np.arange(start, stop)
    rows, lengths = positions // window - first, positions % window

    def draw(active: np.ndarray, count: int, round_number: int) -> list[np.ndarray]:
        requests = [(int(rows[i]), int(lengths[i]), count) for i in active]
        return model.draw_in_windows(windows, requests, keyed_seed(*task.key("draws", block, round_number)))

    return np.asarray(task.tokens[start:stop]), draw


def _run(draw: Draw, gold: np.ndarray, minimum: int, cap: int) -> Statistics:
    """Draw `minimum` times everywhere, then where no hit was seen, doubling, up to `cap`."""
    counts, pairs, first = (np.zeros(len(gold), np.int64) for _ in range(3))
    active, done, round_number = np.arange(len(gold)), 0, 0
    target = minimum or min(FIRST_ROUND, cap)
    while len(active) and done < target:
        ids = np.asarray(draw(active, target - done, round_number))
        hits = ids == gold[active, None]
        hit = hits.any(axis=1)
        first[active[hit]] = done + hits[hit].argmax(axis=1) + 1
        if round_number == 0 and minimum:
            counts = hits.sum(axis=1)
            pairs = np.array([matching_pairs(np.bincount(row)) for row in ids])
        active = active[~hit]
        done, target, round_number = target, min(2 * target, cap), round_number + 1
    return Statistics(counts, pairs, first)


def _mixed(draw: Draw, task: Task, block: int) -> Draw:
    """Draws of (1 - l) G + l Uniform."""

    def draw_mixed(active: np.ndarray, count: int, round_number: int) -> list[np.ndarray]:
        drawn = draw(active, count, round_number)
        rng = keyed_rng(*task.key("mixture", block, round_number))
        shape = (len(active), count)
        uniform = rng.integers(task.vocabulary, size=shape)
        return list(np.where(rng.random(shape) < task.settings.mixture, uniform, np.reshape(drawn, shape)))

    return draw_mixed


def _rows(task: Task, estimand: str, name: str, block: int, stream: Statistics) -> Iterator[Row]:
    """One estimator's row: what it makes of the stream, and the draws that it would have needed alone."""
    estimator = task.estimator(name)
    draws = estimator.cap if name == "ibs" else estimator.draws
    missed = stream.first_hits == NEVER_HIT
    if name == "ibs":
        inputs = {"first_hits": np.where(stream.first_hits > draws, NEVER_HIT, stream.first_hits)}
        missed = inputs["first_hits"] == NEVER_HIT
        drawn = np.where(missed, draws, stream.first_hits)
    else:
        inputs = {key: getattr(stream, key) for key in estimator.inputs}
        drawn = np.full(len(stream.counts), draws)
        if name == "rb-ibs":
            drawn = np.where(stream.counts > 0, draws, np.where(missed, estimator.cap, stream.first_hits))
        else:
            missed = stream.counts == 0
    variance = np.nan if isinstance(estimator, Brier) else estimator.estimated_variance(**inputs)
    yield from task.rows(
        estimand, name, draws, [block], estimator.estimate(**inputs),
        unit=estimator.unit, variance=variance, drawn=drawn, never_hit=missed,
    )  # fmt: skip
