"""How well filters match a sequence at best: rows of a table are added, and only the best place is kept.

This is a convolution over embedded tokens and the maximum over its places, with the products of filter and
embedding looked up: a table has a row for every token at every offset of a window. Windows of several widths
share a table, each with rows of its own. Going back, a row collects the gradients of the matches that read it
and were the first of the strongest; windows that match equally well are equal, so it does not matter which.
"""

from functools import cache
from itertools import accumulate
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag, max_pool2d

Widths = tuple[int, ...]


class StrongestMatch(torch.autograd.Function):
    """max_t Σ_j table[x_{t+j}, l_w + j] of sequences x, shape (rows, length), for every width w.

    A table of shape (|V|, lines, filters) has a line for every offset of every width, from l_w on for w.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, tokens: Tensor, widths: tuple[Widths, ...], *tables: Tensor) -> Tensor:
        """Shape (rows, features): for every table every of its widths, for every width all filters."""
        found = [_strongest(tokens, its, table) for its, table in zip(widths, tables, strict=True)]
        matches, places = zip(*found, strict=True)
        ctx.save_for_backward(tokens, *places)
        ctx.widths, ctx.vocabulary = widths, len(tables[0])
        return torch.cat([match.flatten(1) for match in matches], dim=1)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Of the tables only: tokens have none."""
        tokens, *places = ctx.saved_tensors
        values = torch.arange(ctx.vocabulary, device=tokens.device)
        sorted_tokens, order = tokens.flatten().sort(stable=True)
        of_value = torch.searchsorted(sorted_tokens, values)
        parts = gradient.split([place[0].numel() for place in places], dim=1)
        return (
            None,
            None,
            *(
                _of_table(
                    part.reshape(place.shape),
                    place,
                    Readers.of(its, *tokens.shape, tokens.device),
                    order,
                    of_value,
                )
                for part, place, its in zip(parts, places, ctx.widths, strict=True)
            ),
        )


def _strongest(tokens: Tensor, widths: Widths, table: Tensor) -> tuple[Tensor, Tensor]:
    """The best match of every width, and at which place its window starts, shape (rows, widths, filters).

    Matches are pooled as an image, one column wide, whose channels lie side by side in memory.
    """
    _, lines, filters = table.shape
    pooled = []
    for width, offsets in zip(widths, _offsets(widths, tokens.device), strict=True):
        read = torch.add(offsets, tokens.unfold(1, width, 1), alpha=lines)
        matches = embedding_bag(read.flatten(0, 1), table.flatten(0, 1), mode="sum")
        image = matches.view(len(tokens), -1, 1, filters).permute(0, 3, 1, 2)
        pooled.append(max_pool2d(image, image.shape[2:], return_indices=True))
    best, place = (torch.cat(parts, dim=2).squeeze(3).transpose(1, 2) for parts in zip(*pooled, strict=True))
    return best, place


@cache
def _offsets(widths: Widths, device: torch.device) -> tuple[Tensor, ...]:
    """The lines of every width."""
    return torch.arange(sum(widths), device=device).split(widths)


def _of_table(
    gradient: Tensor, places: Tensor, readers: "Readers", order: Tensor, of_value: Tensor
) -> Tensor:
    """Gradient of a table, given that of its strongest matches.

    `order` lists all tokens by their value, those of a value from `of_value` on. A row of the table is read
    by as many windows as there are tokens of its value, less those that the sequence ends before.
    """
    lines, filters = len(readers.of_token), gradient.shape[2]
    of_matches = gradient.new_zeros(readers.windows + 1, filters)
    filter_numbers = torch.arange(filters, device=gradient.device)
    elements = torch.add(filter_numbers, readers.first + places, alpha=filters)
    of_matches.view(-1).scatter_(0, elements.flatten(), gradient.flatten())
    of_line = order.numel() * torch.arange(lines, device=gradient.device).unsqueeze(1)
    of_rows = embedding_bag(
        readers.of_token[:, order].flatten(), of_matches, (of_line + of_value).flatten(), mode="sum"
    )
    return of_rows.view(lines, -1, filters).transpose(0, 1)


class Readers(NamedTuple):
    """Windows of some widths over a batch: all of the first width, sequence by sequence, then of the next.

    There are `windows` of them. `first`, shape (rows, widths, 1), numbers those at the start of a sequence.
    `of_token`, shape (lines, tokens), is for every token of the batch the window that has it at the offset of
    a line; where none does, the number behind the last one.
    """

    windows: int
    first: Tensor
    of_token: Tensor

    @classmethod
    @cache
    def of(cls, widths: Widths, rows: int, length: int, device: torch.device) -> Self:
        """Made once for all batches of a size."""
        places = [length - width + 1 for width in widths]
        *before, windows = accumulate((rows * count for count in places), initial=0)
        sequence, position = (torch.arange(n, device=device) for n in (rows, length))
        of_token = [
            torch.where(
                (start >= 0) & (start < count), from_window + count * sequence[:, None] + start, windows
            )
            for width, count, from_window in zip(widths, places, before, strict=True)
            for start in (position - offset for offset in range(width))
        ]
        first = [from_window + count * sequence for from_window, count in zip(before, places, strict=True)]
        return cls(windows, torch.stack(first, dim=1).unsqueeze(2), torch.stack(of_token).flatten(1))
