"""Tokens in bins: where in its window a token stands, and how probable it was.

A row of a bin is one like any other, summed over the tokens of a stretch of the text that fall into the bin
instead of over a block. Stretches are cut by absolute position; there are so few of them that the rows stay
few however long the text is, and enough for an interval.

Shards may cut a stretch, so what they add up must not depend on the order. Every summand is therefore rounded
to a multiple of 2^-20: sums of such numbers are exact in double precision up to 2^33, in any order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ganlm.measurement import EXACT, SAMPLE, Row, Task

POSITION, PROBABILITY, HITS = "position", "probability", "hits"
NEVER_HIT, EXPECTED_NEVER_HIT = "never-hit", "expected-never-hit"
HARMONIC, PLUG_IN, EXPECTED_PLUG_IN = "harmonic", "plug-in", "expected-plug-in"
QUANTUM = 2.0**-20
MAX_STRETCHES = 64
EVERY_POSITION = 32
PER_DOUBLING = 4
RAREST = 20
NO_HIT = -1


def first_positions(window: int) -> np.ndarray:
    """First positions of the bins of 1, ..., window: one each in short windows, else four per doubling."""
    if window <= EVERY_POSITION:
        return np.arange(1, window + 1)
    edges = np.ceil(2 ** (np.arange(PER_DOUBLING * np.log2(window)) / PER_DOUBLING))
    return np.unique(edges).astype(int)


@dataclass(frozen=True, eq=False)
class Cut:
    """Tokens of some blocks by one property: the labels of its bins, and the bin of every token."""

    view: str
    labels: np.ndarray
    bins: np.ndarray


class Column(NamedTuple):
    """A number for every token."""

    name: str
    draws: int
    values: np.ndarray
    unit: str = "bits"


def by_position(task: Task, blocks: Sequence[int]) -> list[Cut]:
    """By the place in the window, counted from 1; a state that is carried through has no windows."""
    window = task.protocol.window
    if window is None:
        return []
    labels = first_positions(window)
    bin_of = np.searchsorted(labels, np.arange(1, window + 1), side="right") - 1
    positions = np.concatenate([np.arange(*task.grid.span(block)) for block in blocks])
    return [Cut(POSITION, labels, bin_of[positions % window])]


def by_probability(bits: np.ndarray) -> Cut:
    """By -log2 p of the token, in whole bits; the last bin holds all that is rarer."""
    return Cut(PROBABILITY, np.arange(RAREST + 1), np.minimum(bits, RAREST).astype(np.intp))


def by_hits(counts: np.ndarray, draws: int) -> Cut:
    """By -log2 (k/N) in whole bits, where k of N draws were the token; apart where none was."""
    labels = np.arange(NO_HIT, int(np.log2(draws)) + 1)
    bits = np.where(counts == 0, NO_HIT, np.log2(draws / np.maximum(counts, 1)))
    return Cut(HITS, labels, bits.astype(np.intp) - NO_HIT)


class Tally:
    """Sums by view, bin and stretch of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._stretch = 1
        while len(task.grid) > MAX_STRETCHES * self._stretch:
            self._stretch *= 2
        self._labels: dict[str, np.ndarray] = {}
        self._sums: dict[tuple[str, str, int, str, int], np.ndarray] = {}

    def add_known(self, blocks: Sequence[int], bits: np.ndarray, p: np.ndarray) -> None:
        """Exact bits, and what N draws are expected to make of them."""
        columns = [Column(EXACT, 0, bits)]
        if PLUG_IN in self._task.settings.estimators:
            draws = self._task.settings.draws
            columns += [
                Column(EXPECTED_PLUG_IN, draws, self._task.estimator(PLUG_IN).expectation(p)),
                Column(EXPECTED_NEVER_HIT, draws, (1 - p) ** draws, "tokens"),
            ]
        self._add(blocks, [*by_position(self._task, blocks), by_probability(bits)], columns)

    def add_counted(self, blocks: Sequence[int], counts: np.ndarray, draws: int) -> None:
        """Estimates from hits among N draws."""
        names = [name for name in (HARMONIC, PLUG_IN) if name in self._task.settings.estimators]
        columns = [Column(name, draws, self._task.estimator(name, draws).estimate(counts)) for name in names]
        columns += [Column(NEVER_HIT, draws, counts == 0, "tokens")]
        self._add(blocks, [*by_position(self._task, blocks), by_hits(counts, draws)], columns)

    def add_by_position(
        self, blocks: Sequence[int], name: str, draws: int, values: np.ndarray, group: int = 0
    ) -> None:
        """Any other estimate, or what a group of draws that all blocks share added to it."""
        self._add(blocks, by_position(self._task, blocks), [Column(name, draws, values)], group)

    def _add(
        self, blocks: Sequence[int], cuts: Sequence[Cut], columns: Sequence[Column], group: int = 0
    ) -> None:
        lengths = [stop - start for start, stop in map(self._task.grid.span, blocks)]
        stretches = np.repeat(np.asarray(blocks) // self._stretch, lengths)
        rounded = [np.rint(np.asarray(column.values) / QUANTUM) * QUANTUM for column in columns]
        for cut in cuts:
            self._labels[cut.view] = cut.labels
            cells, count = stretches * len(cut.labels) + cut.bins, MAX_STRETCHES * len(cut.labels)
            tokens = np.bincount(cells, minlength=count)
            for column, values in zip(columns, rounded, strict=True):
                key = (cut.view, column.name, column.draws, column.unit, group)
                sums = self._sums.setdefault(key, np.zeros((2, count)))
                sums += (tokens, np.bincount(cells, values, minlength=count))

    def rows(self) -> Iterator[Row]:
        """One row per view, estimator, stretch and bin that has tokens."""
        for (view, name, draws, unit, group), (tokens, totals) in self._sums.items():
            labels = self._labels[view]
            for cell in np.flatnonzero(tokens):
                stretch, place = divmod(int(cell), len(labels))
                yield Row(
                    self._task.protocol.name, SAMPLE, name, draws, unit, stretch * self._stretch,
                    int(tokens[cell]), float(totals[cell]), np.nan, 0.0, 0, group, view, int(labels[place]),
                )  # fmt: skip
