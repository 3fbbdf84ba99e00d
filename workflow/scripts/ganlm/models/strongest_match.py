"""The strongest match of a filter in a sequence of tokens: convolution and maximum over time in one.

A filter of width w over tokens is a table: row j |V| + v says what token v brings at offset j of its window.
So a match is a sum of w rows, gathered and added; nothing is multiplied with zeros. Backwards the roles
change: a row collects the gradients of the matches that read it and were the strongest of their sequence.
Equal windows match equally well, and share the gradient.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag


class StrongestMatch(torch.autograd.Function):
    """max_t Σ_j table[j |V| + x_{t+j}] of a table (w |V|, filters) and sequences x, shape (rows, length)."""

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, tokens: Tensor, vocabulary: int) -> Tensor:
        """Shape (rows, filters)."""
        width = len(table) // vocabulary
        read = tokens.unfold(1, width, 1) + vocabulary * torch.arange(width, device=tokens.device)
        matches = embedding_bag(read.flatten(0, 1), table, mode="sum").view(*read.shape[:2], -1)
        strongest = matches.amax(dim=1)
        ctx.save_for_backward(tokens, matches, strongest)
        ctx.width, ctx.vocabulary = width, vocabulary
        return strongest

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Of the table only: tokens have none."""
        tokens, matches, strongest = ctx.saved_tensors
        rows, places, filters = matches.shape
        of_matches = torch.zeros(rows * places + 1, filters, dtype=matches.dtype, device=matches.device)
        is_strongest = of_matches[:-1].view_as(matches)
        torch.ge(matches, strongest[:, None], out=is_strongest)
        is_strongest.mul_((gradient / is_strongest.sum(dim=1))[:, None])
        read_by, first = _readers(tokens, ctx.width, ctx.vocabulary)
        return embedding_bag(read_by, of_matches, first, mode="sum"), None, None


def _readers(tokens: Tensor, width: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """For every row of the table the matches that read it, one row after the other, and where each begins.

    All tokens are listed by their value; at offset j, the token at position s is read by the match that
    starts at s − j. Where none does, the list names a match behind the last one.
    """
    rows, length = tokens.shape
    places = length - width + 1
    order = tokens.flatten().argsort(stable=True)
    row, position = order // length, order % length
    start = position - torch.arange(width, device=tokens.device)[:, None]
    read_by = torch.where((start >= 0) & (start < places), row * places + start, rows * places)
    counts = torch.bincount(tokens.flatten(), minlength=vocabulary)
    first = counts.cumsum(0) - counts
    offsets = first + tokens.numel() * torch.arange(width, device=tokens.device)[:, None]
    return read_by.flatten(), offsets.flatten()
