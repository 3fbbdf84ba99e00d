"""The strongest match of a filter in a sequence of tokens: convolution and maximum over time in one.

A filter of width w over tokens is a table: row j |V| + v says what token v brings at offset j of its window.
So a match is a sum of w rows, gathered and added; nothing is multiplied with zeros. Backwards the roles
change: a row collects the gradients of the matches that read it and were the strongest of their sequence.
Equal windows match equally well, and share the gradient.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag


class StrongestMatches(torch.autograd.Function):
    """max_t Σ_j table[j |V| + x_{t+j}] of sequences x, shape (rows, length), and tables (w |V|, filters)."""

    @staticmethod
    def forward(ctx: FunctionCtx, tokens: Tensor, vocabulary: int, *tables: Tensor) -> Tensor:
        """Filters of all tables side by side: shape (rows, all filters)."""
        matches = [_matches(table, tokens, vocabulary) for table in tables]
        strongest = torch.cat([found.amax(dim=1) for found in matches], dim=1)
        ctx.save_for_backward(tokens, strongest, *matches)
        ctx.vocabulary = vocabulary
        return strongest

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Of the tables only: tokens have none."""
        tokens, strongest, *matches = ctx.saved_tensors
        filters = [found.shape[2] for found in matches]
        parts = zip(matches, strongest.split(filters, dim=1), gradient.split(filters, dim=1), strict=True)
        occurrences = _Occurrences.of(tokens, ctx.vocabulary)
        return None, None, *(_of_table(*part, occurrences) for part in parts)


class _Occurrences(NamedTuple):
    """All tokens of some sequences, listed by their value.

    `start` has a line for every offset j: where the window starts that has the token there, s − j of its
    position s, or less than 0. `first` says where each value begins when the lines are read in turn.
    """

    row: Tensor
    start: Tensor
    first: Tensor

    @classmethod
    def of(cls, tokens: Tensor, vocabulary: int) -> Self:
        """For windows up to the length of a sequence."""
        length = tokens.shape[1]
        offset = torch.arange(length, device=tokens.device)[:, None]
        order = tokens.flatten().argsort(stable=True)
        counts = torch.bincount(tokens.flatten(), minlength=vocabulary)
        first = counts.cumsum(0) - counts + offset * tokens.numel()
        return cls(order // length, order % length - offset, first)

    def readers(self, width: int, places: int, none: int) -> tuple[Tensor, Tensor]:
        """For every row of a table the matches that read it, and where each row's begin.

        Where no window has the token at that offset, the match is called `none`.
        """
        start = self.start[:width]
        read_by = torch.where((start >= 0) & (start < places), self.row * places + start, none)
        return read_by.flatten(), self.first[:width].flatten()


def _matches(table: Tensor, tokens: Tensor, vocabulary: int) -> Tensor:
    """Of every window with every filter: shape (rows, places, filters)."""
    width = len(table) // vocabulary
    read = tokens.unfold(1, width, 1) + vocabulary * torch.arange(width, device=tokens.device)
    return embedding_bag(read.flatten(0, 1), table, mode="sum").view(*read.shape[:2], -1)


def _of_table(matches: Tensor, strongest: Tensor, gradient: Tensor, occurrences: _Occurrences) -> Tensor:
    """The gradient of a table: each row gathers that of the matches that read it."""
    rows, places, filters = matches.shape
    of_matches = torch.zeros(rows * places + 1, filters, dtype=matches.dtype, device=matches.device)
    is_strongest = of_matches[:-1].view_as(matches)
    torch.ge(matches, strongest[:, None], out=is_strongest)
    is_strongest.mul_((gradient / is_strongest.sum(dim=1))[:, None])
    width = len(occurrences.start) - places + 1
    read_by, first = occurrences.readers(width, places, none=rows * places)
    return embedding_bag(read_by, of_matches, first, mode="sum")
