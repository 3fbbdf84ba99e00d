"""Sums over blocks of text: what intervals are made of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sums over base blocks of the test text, kept in text order whatever order they came in.

    Attributes:
        sum_bits: bits of each block; differences of two models may be negative.
        tokens: tokens of each block; the last block of a text may be shorter.
        block: position of each block in the text, counted in base blocks; 0, 1, 2, ... if absent.
        mc_variance: variance of each `sum_bits` due to drawing; absent for exact probabilities.
        shared: where blocks share their draws, what each group of draws added to each `sum_bits`,
            (blocks, groups); one such table per model.

    """

    sum_bits: FloatArray
    tokens: FloatArray
    block: NDArray[np.int64] | None = None
    mc_variance: FloatArray | None = None
    shared: tuple[FloatArray, ...] = ()

    def __post_init__(self) -> None:
        tokens = np.asarray(self.tokens, float)
        block = np.arange(tokens.size) if self.block is None else np.asarray(self.block)
        columns = {
            "sum_bits": np.asarray(self.sum_bits, float),
            "tokens": tokens,
            "block": block,
        }
        if self.mc_variance is not None:
            columns["mc_variance"] = np.asarray(self.mc_variance, float)
        _check(columns)
        order = np.argsort(block)
        for name, column in columns.items():
            object.__setattr__(self, name, column[order])
        object.__setattr__(
            self, "shared", tuple(_checked_table(table, len(order))[order] for table in self.shared)
        )

    @property
    def mean(self) -> float:
        """Ratio estimate: all bits over all tokens."""
        return float(self.sum_bits.sum() / self.tokens.sum())


def _check(columns: dict[str, ArrayLike]) -> None:
    """Refuse data that no interval can be made of, in one sentence."""
    sizes = {name: np.shape(column) for name, column in columns.items()}
    shape = sizes["sum_bits"]
    if len(shape) != 1 or shape[0] == 0 or len(set(sizes.values())) > 1:
        raise ValueError(f"Blocks need columns of one equal length of at least 1, not {sizes}.")
    block = columns["block"]
    if not np.issubdtype(block.dtype, np.integer) or block.min() < 0:
        raise ValueError("Block positions must be non-negative integers, counted from the start.")
    repeated = block.size - np.unique(block).size
    if repeated:
        raise ValueError(f"{repeated} blocks are repeated; give each block of the text once.")
    bits, tokens = columns["sum_bits"], columns["tokens"]
    _refuse(block, np.isnan(bits), "has no number of bits (nan)")
    _refuse(block, ~(np.isfinite(tokens) & (tokens > 0)), "has no tokens")
    if np.isposinf(bits).any() and np.isneginf(bits).any():
        raise ValueError("Blocks with +inf and -inf bits have no mean; compare smoothed models.")
    if "mc_variance" in columns:
        variance = columns["mc_variance"]
        _refuse(block, ~(np.isfinite(variance) & (variance >= 0)), "has no valid mc_variance")


def _checked_table(table: ArrayLike, blocks: int) -> FloatArray:
    """What groups of draws added to blocks: one row per block, and two groups at least."""
    table = np.asarray(table, float)
    if table.ndim != 2 or len(table) != blocks or table.shape[1] < 2:
        raise ValueError(
            f"Shared draws need a table of {blocks} blocks and 2 groups or more, not {table.shape}."
        )
    return table


def _refuse(block: NDArray[np.int64], bad: NDArray[np.bool_], what: str) -> None:
    """Name the first bad block."""
    if bad.any():
        raise ValueError(
            f"Block {block[bad].min()} {what}, and so have {bad.sum()} of {bad.size} blocks; "
            "leave them out or evaluate them again."
        )
