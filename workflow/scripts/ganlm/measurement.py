"""What a measurement is: its settings, and its rows, one per block, estimand and estimator."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ganlm.estimators import Estimator, build
from ganlm.protocol import Grid, Protocol

SAMPLE = "sample"
ARGMAX = "argmax"
WINDOW = "window"
EXACT = "exact"
RB_IBS_PATIENCE = 10
FIXED_DRAWS = ("plug-in", "smoothed", "harmonic")
WHOLE = "whole"


class Row(NamedTuple):
    """A line of a result file. `total` is a sum over the tokens of a block, in bits or as a score.

    `draws` is N, or the cap of `ibs`; 0 where neither plays a part. `group` is 0, except where blocks share
    their draws: there, rows with the number of a group of draws hold what this group added to the total,
    and `variance`, which assumes that every block has draws of its own, is nan. `view` is WHOLE, except where
    a row holds only the tokens of one `bin` of a view, in the stretch of text that begins with `block`.
    """

    protocol: str
    estimand: str
    estimator: str
    draws: int
    unit: str
    block: int
    tokens: int
    total: float
    variance: float
    drawn: float
    never_hit: int
    group: int = 0
    view: str = WHOLE
    bin: int = 0


BLOCK_COLUMNS = [name for name in Row._fields if name not in ("view", "bin")]


@dataclass(frozen=True)
class Settings:
    """The `evaluation` block of the config."""

    block: int
    draws: int
    draws_grid: tuple[int, ...]
    cap: int
    estimators: tuple[str, ...]
    pseudocount: float
    mixture: float
    characters: int | None
    explicit_characters: int | None
    seed: int

    @classmethod
    def parse(cls, block: dict, draws: int) -> Self:
        """From the config, with the number of draws settled."""
        known = {name: block[name] for name in cls.__dataclass_fields__ if name in block}
        lists = {name: tuple(block[name]) for name in ("draws_grid", "estimators")}
        return cls(**known | lists | {"draws": draws})

    @property
    def mixture_estimand(self) -> str:
        """The generator that errs towards uniform: (1 - l) G + l Uniform."""
        return f"mixture-{self.mixture:g}"


@dataclass(frozen=True)
class Text:
    """The test part: its tokens, their digest, and the size of the alphabet."""

    tokens: np.ndarray
    sha256: str
    vocabulary: int


@dataclass(frozen=True)
class Task:
    """One model on some blocks of a text under one protocol."""

    model: str
    text: Text
    protocol: Protocol
    settings: Settings
    blocks: Sequence[int]

    @property
    def tokens(self) -> np.ndarray:
        """The whole text."""
        return self.text.tokens

    @property
    def vocabulary(self) -> int:
        """Size of the alphabet."""
        return self.text.vocabulary

    @property
    def grid(self) -> Grid:
        """Blocks of the whole text."""
        return Grid(len(self.tokens), self.settings.block)

    def estimator(self, name: str, draws: int | None = None) -> Estimator:
        """An estimator of that name with this task's settings."""
        settings = self.settings
        draws = draws or settings.draws
        return build(
            name,
            draws=draws,
            cap=max(settings.cap, RB_IBS_PATIENCE * draws) if name == "rb-ibs" else settings.cap,
            alphabet_size=self.vocabulary,
            pseudocount=settings.pseudocount,
        )

    def key(self, *purpose: object) -> tuple:
        """What the random numbers for a purpose depend on."""
        return (self.settings.seed, self.model, self.protocol.name, *purpose)

    def rows(
        self,
        estimand: str,
        estimator: str,
        draws: int,
        blocks: Sequence[int],
        values: np.ndarray,
        *,
        unit: str = "bits",
        variance: np.ndarray | float = 0.0,
        drawn: np.ndarray | float = 0.0,
        never_hit: np.ndarray | float = 0.0,
    ) -> Iterator[Row]:
        """Per-token columns of consecutive whole blocks, summed block by block."""
        lengths = [stop - start for start, stop in map(self.grid.span, blocks)]
        starts = np.cumsum([0, *lengths[:-1]])
        columns = [
            np.add.reduceat(np.broadcast_to(np.asarray(column, float), values.shape), starts)
            for column in (values, variance, drawn, never_hit)
        ]
        for block, length, total, spread, count, missed in zip(blocks, lengths, *columns, strict=True):
            yield Row(
                self.protocol.name, estimand, estimator, draws, unit,
                int(block), length, float(total), float(spread), float(count), int(missed),
            )  # fmt: skip


def tasks(
    model: str,
    strength: str,
    text: Text,
    windows: Sequence[int | str],
    settings: Settings,
    shard: tuple[int, int],
) -> Iterator[Task]:
    """One task per protocol, for the `shard[0]`-th of `shard[1]` shards, counted from 1.

    How much of the text is measured depends on what can be had of a model: exact bits are cheap, draws are
    not, and a table of counts says itself what it covers. Blocks of models with draws are always among those
    of exact ones, so that the two can be compared. A carried state cannot be divided: it belongs to
    the first shard.
    """
    index, count = shard
    grid = Grid(len(text.tokens), settings.block)
    chosen = grid.subset(None if strength == "counts" else settings.characters, settings.seed)
    if strength == "explicit":
        chosen = np.union1d(chosen, grid.subset(settings.explicit_characters, settings.seed))
    mine = grid.shard(index - 1, count)
    for protocol in map(Protocol.parse, windows):
        blocks = [int(block) for block in chosen if block in mine]
        if protocol.window is None:
            blocks = list(range(len(grid))) if index == 1 else []
        if blocks:
            yield Task(model, text, protocol, settings, blocks)
