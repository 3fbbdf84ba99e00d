"""How well filters match a sequence at best: rows of a table are added, and only the best place is kept.

This is a convolution over embedded tokens and the maximum over its places, with the products of filter and
embedding looked up: a table has a row for every token at every offset of a window. Windows of several widths
share a table, each with rows of its own. Going back, no rows change: a row collects the gradients of the
matches that read it and were the strongest. Equal windows match equally well, and share the gradient.
"""

from functools import cache
from itertools import accumulate
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag


class StrongestMatch(torch.autograd.Function):
    """max_t Σ_j table[x_{t+j}, l_w + j] of sequences x, shape (rows, length), for every width w.

    A table of shape (|V|, lines, filters) has a line for every offset of every width, from l_w on for w.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, tokens: Tensor, widths: tuple[int, ...]) -> Tensor:
        """Shape (rows, widths, filters)."""
        windows = Windows.of(widths, tokens.shape[1], tokens.device)
        read, first = windows.reads(tokens)
        matches = embedding_bag(read, table.flatten(0, 1), first, mode="sum").view(
            len(tokens), sum(windows.places), -1
        )
        strongest = torch.stack([m.amax(dim=1) for m in matches.split(windows.places, dim=1)], dim=1)
        ctx.save_for_backward(tokens, matches, strongest)
        ctx.windows, ctx.vocabulary = windows, len(table)
        return strongest

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Of the table only: tokens have none."""
        tokens, matches, strongest = ctx.saved_tensors
        count, filters = matches.shape[:2].numel(), matches.shape[2]
        of_matches = torch.empty(count + 1, filters, dtype=matches.dtype, device=matches.device)
        of_matches[count] = 0
        shares = of_matches[:count].view_as(matches)
        for width, (found, share) in enumerate(
            zip(*(m.split(ctx.windows.places, dim=1) for m in (matches, shares)), strict=True)
        ):
            torch.ge(found, strongest[:, width, None], out=share)
            share.mul_((gradient[:, width] / share.sum(dim=1))[:, None])
        read_by, first = ctx.windows.readers(tokens, ctx.vocabulary)
        of_lines = embedding_bag(read_by, of_matches, first, mode="sum")
        return of_lines.view(-1, ctx.vocabulary, filters).transpose(0, 1), None, None


class Windows(NamedTuple):
    """All windows of some widths in a sequence: those of the first width, then those of the second.

    `places` has the number of windows of each width. Of each token of each window: `position` is where it
    stands in the sequence, `line` which line of the table it is looked up in; `first` is where each window
    begins in these two. Of each line of the table: `offset` is its offset in a window, `from_window` the
    first window of its width, and `last` the position at which the last of them starts.
    """

    places: list[int]
    position: Tensor
    line: Tensor
    first: Tensor
    offset: Tensor
    from_window: Tensor
    last: Tensor

    @classmethod
    @cache
    def of(cls, widths: tuple[int, ...], length: int, device: torch.device) -> Self:
        """Made once for all batches."""
        places = [length - width + 1 for width in widths]
        from_line, from_window = (list(accumulate(n, initial=0)) for n in (widths, places))
        windows = [(w, t) for w, count in enumerate(places) for t in range(count)]
        lines = [(w, j) for w, width in enumerate(widths) for j in range(width)]
        columns = (
            [t + j for w, t in windows for j in range(widths[w])],
            [from_line[w] + j for w, t in windows for j in range(widths[w])],
            list(accumulate((widths[w] for w, _ in windows[:-1]), initial=0)),
            [j for _, j in lines],
            [from_window[w] for w, _ in lines],
            [places[w] - 1 for w, _ in lines],
        )
        return cls(places, *(torch.tensor(column, device=device) for column in columns))

    def reads(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the table that all windows of all sequences read, and where each window's begin."""
        read = tokens[:, self.position] * len(self.offset) + self.line
        sequence = torch.arange(len(tokens), device=tokens.device)[:, None]
        return read.flatten(), (self.first + len(self.position) * sequence).flatten()

    def readers(self, tokens: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
        """For every line and token of it the windows that read it, and where each token's begin.

        All tokens are listed by their value; at offset j, the token at position s is read by the window that
        starts at s − j. Where none does, the list names a window behind the last one.
        """
        rows, length = tokens.shape
        order = tokens.flatten().argsort(stable=True)
        start = order % length - self.offset[:, None]
        window = order // length * len(self.first) + self.from_window[:, None] + start
        is_there = (start >= 0) & (start <= self.last[:, None])
        values = torch.arange(vocabulary, device=tokens.device)
        of_value = torch.searchsorted(tokens.flatten()[order], values)
        lists = tokens.numel() * torch.arange(len(self.offset), device=tokens.device)[:, None]
        return (
            torch.where(is_there, window, rows * len(self.first)).flatten(),
            (lists + of_value).flatten(),
        )
