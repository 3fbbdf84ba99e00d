"""One streaming pass over the test part: from a generator to sums of bits per block of text.

Blocks are cut by absolute position in the text, never by window or by piece of work, so that the sums do
not depend on how the work was divided. Memory is that of one piece, whatever the length of the text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ganlm.generator import Explicit

PIECE_TOKENS = 1 << 18


@dataclass(frozen=True)
class Protocol:
    """How much context a model gets: its state restarts every `window` tokens, or never."""

    window: int | None

    @classmethod
    def parse(cls, window: int | str) -> "Protocol":
        """From the config: a number, or `none`."""
        return cls(None if window == "none" else int(window))

    @property
    def name(self) -> str:
        """As it appears in result files and tables."""
        return "carried" if self.window is None else f"window-{self.window}"


def gold_bits(
    model: Explicit, tokens: np.ndarray, protocol: Protocol, piece_tokens: int = PIECE_TOKENS
) -> Iterator[np.ndarray]:
    """Exact bits of every token of the text, in order, piece by piece."""
    if protocol.window is None:
        return _carried_bits(model, tokens, piece_tokens)
    return _windowed_bits(model, tokens, protocol.window, piece_tokens)


def _carried_bits(model: Explicit, tokens: np.ndarray, piece_tokens: int) -> Iterator[np.ndarray]:
    state = model.start(1)
    for start in range(0, len(tokens), piece_tokens):
        bits, state = model.surprisal(state, tokens[None, start : start + piece_tokens])
        yield bits[0]


def _windowed_bits(
    model: Explicit, tokens: np.ndarray, window: int, piece_tokens: int
) -> Iterator[np.ndarray]:
    """Windows side by side; the text's last, shorter window is scored too."""
    rows = max(1, piece_tokens // window)
    whole = len(tokens) - len(tokens) % window
    for start in range(0, whole, rows * window):
        windows = tokens[start : min(start + rows * window, whole)].reshape(-1, window)
        bits, _ = model.surprisal(model.start(len(windows)), windows)
        yield bits.ravel()
    if whole < len(tokens):
        bits, _ = model.surprisal(model.start(1), tokens[None, whole:])
        yield bits[0]


def in_blocks(pieces: Iterable[np.ndarray], block_tokens: int) -> Iterator[np.ndarray]:
    """The same values, cut into blocks of `block_tokens`, the last one shorter."""
    rest = np.empty(0)
    for piece in pieces:
        values = np.concatenate([rest, piece])
        whole = len(values) - len(values) % block_tokens
        yield from values[:whole].reshape(-1, block_tokens)
        rest = values[whole:]
    if len(rest):
        yield rest


def evaluate(model: Explicit, tokens: np.ndarray, protocol: Protocol, block_tokens: int) -> pd.DataFrame:
    """One row per block of text: exact bits, and how many tokens they are for."""
    rows = [
        (block, bits.sum(), len(bits))
        for block, bits in enumerate(in_blocks(gold_bits(model, tokens, protocol), block_tokens))
    ]
    frame = pd.DataFrame(rows, columns=["block", "sum_bits", "tokens"])
    labels = {"protocol": protocol.name, "estimand": "sample", "estimator": "exact", "draws": 0}
    return frame.assign(**labels, never_hit=0)[
        ["protocol", "estimand", "estimator", "draws", "block", "sum_bits", "tokens", "never_hit"]
    ]
