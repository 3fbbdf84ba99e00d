"""Small measurements: tasks with settings that a test does not care about, and what their rows say."""

from collections.abc import Iterable, Sequence

import numpy as np

from ganlm.generator import Explicit, Sampled
from ganlm.measurement import WHOLE, Row, Settings, Task, Text
from ganlm.models import ngram
from ganlm.models.ngram import NGram
from ganlm.protocol import Grid, Protocol

VOCABULARY = 6
_RNG = np.random.default_rng(7)
TRAIN = _RNG.choice(VOCABULARY, 400, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
TEST = _RNG.choice(VOCABULARY, 103, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]).astype(np.uint8)
TRIGRAM = NGram.train(TRAIN, VOCABULARY, ngram.Settings(3))

DEFAULTS = {
    "block": 25,
    "draws": 50,
    "draws_grid": (),
    "cap": 5000,
    "estimators": ("plug-in", "smoothed", "harmonic", "ibs", "rb-ibs", "mean-softmax", "brier"),
    "pseudocount": 0.5,
    "mixture": 0.0,
    "characters": None,
    "explicit_characters": None,
    "seed": 1,
}


def task(tokens: np.ndarray, window: int | None, blocks: Sequence[int] | None = None, **changes) -> Task:
    """A measurement of some blocks of a text, all of them unless told."""
    settings = Settings(**DEFAULTS | changes)
    blocks = range(len(Grid(len(tokens), settings.block))) if blocks is None else blocks
    return Task("model", Text(tokens, "0" * 64, VOCABULARY), Protocol(window), settings, blocks)


def whole(rows: Iterable[Row]) -> list[Row]:
    """The rows of whole blocks, without those of bins of tokens."""
    return [row for row in rows if row.view == WHOLE]


def pick(
    rows: Iterable[Row], estimator: str, estimand: str = "sample", draws: int | None = None
) -> list[Row]:
    """The rows of one estimator, by block."""
    wanted = (estimand, estimator, 0)
    chosen = [row for row in whole(rows) if (row.estimand, row.estimator, row.group) == wanted]
    return sorted((row for row in chosen if draws in (None, row.draws)), key=lambda row: row.block)


def total(rows: Iterable[Row], estimator: str, estimand: str = "sample", draws: int | None = None) -> float:
    """Their sum over all blocks."""
    return sum(row.total for row in pick(rows, estimator, estimand, draws))


def error(rows: Iterable[Row], estimator: str, estimand: str = "sample", draws: int | None = None) -> float:
    """The standard error of `total` due to drawing, as the rows state it."""
    return sum(row.variance for row in pick(rows, estimator, estimand, draws)) ** 0.5


def distributions(model: Explicit, tokens: np.ndarray, window: int | None) -> np.ndarray:
    """The distribution at every position, each from a fresh start."""
    rows = []
    for position in range(len(tokens)):
        first = 0 if window is None else position - position % window
        state = model.feed(model.start(1), tokens[None, first:position].astype(np.int64))
        rows.append(model.predict(state)[0])
    return np.array(rows)


class Drawing(Sampled):
    """Draws from the distributions of an explicit model, and keeps a record of what it was asked for."""

    def __init__(self, model: Explicit) -> None:
        self.model, self.vocabulary = model, model.vocabulary
        self.known: dict[bytes, np.ndarray] = {}
        self.record: list[list[tuple[int, int, np.ndarray]]] = []

    def cumulative(self, prefix: np.ndarray) -> np.ndarray:
        key = prefix.tobytes()
        if key not in self.known:
            p = self.model.predict(self.model.feed(self.model.start(1), prefix[None]))[0]
            self.known[key] = np.cumsum(p) / p.sum()
        return self.known[key]

    def draw(self, prefixes, counts, rng):
        assert all(prefix.dtype == np.int64 for prefix in prefixes)
        return [
            np.searchsorted(self.cumulative(prefix), rng.random(count), side="right")
            for prefix, count in zip(prefixes, counts, strict=True)
        ]

    def draw_in_windows(self, windows, requests, seed):
        drawn = super().draw_in_windows(windows, requests, seed)
        self.record.append([(w, n, ids) for (w, n, _), ids in zip(requests, drawn, strict=True)])
        return drawn
