"""Which positions of the test part are measured, and how much context each of them has.

Blocks are cut by absolute position, never by window or shard, so that results do not depend on how the
work was divided, and models can be compared block by block.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ganlm.randomness import keyed_rng


@dataclass(frozen=True)
class Protocol:
    """How much context a model gets: its state restarts every `window` tokens, or never."""

    window: int | None

    @classmethod
    def parse(cls, window: int | str) -> Self:
        """From the config: a number, or `none`."""
        return cls(None if window == "none" else int(window))

    @property
    def name(self) -> str:
        """As it appears in result files and tables."""
        return "carried" if self.window is None else f"window-{self.window}"


@dataclass(frozen=True)
class Grid:
    """The test part, `tokens` long, cut into blocks of `block`; the last one may be shorter."""

    tokens: int
    block: int

    def __len__(self) -> int:
        return -(-self.tokens // self.block)

    def span(self, block: int) -> tuple[int, int]:
        """First position of a block, and the one after its last."""
        return block * self.block, min((block + 1) * self.block, self.tokens)

    def subset(self, tokens: int | None, seed: int) -> np.ndarray:
        """A stratified sample of whole blocks with about `tokens` tokens: the same for every model.

        The text is cut into equal stretches and one block is drawn from each, so that the subset covers
        the text evenly and yet no periodicity of the text can bias it.
        """
        wanted = len(self) if tokens is None else min(len(self), max(1, round(tokens / self.block)))
        if wanted == len(self):
            return np.arange(wanted)
        edges = np.arange(wanted + 1) * len(self) // wanted
        return keyed_rng(seed, "subset").integers(edges[:-1], edges[1:])

    def shard(self, index: int, count: int) -> range:
        """The `index`-th of `count` contiguous ranges of blocks, counted from 0."""
        return range(index * len(self) // count, (index + 1) * len(self) // count)
