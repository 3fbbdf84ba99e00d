"""What the Recurrent GAN's critic reads: items of variable length, by teacher helping (Press et al. 2017).

The generator reads B gold windows x of length L and predicts soft tokens o. Item k = i B + b of the B L there
are is, padded with zero vectors from the left to length L,

    real:  0 … 0  x_b,0 … x_b,i−1  x_b,i          fake:  0 … 0  x_b,0 … x_b,i−1  o_b,i

so a fake differs in its last token only, and soft tokens are never fed back.
"""

import torch
from torch import Tensor


def draw_items(count: int, windows: Tensor, first: int, random: torch.Generator) -> Tensor:
    """Numbers k of `count` items, uniform from `first` on, with replacement.

    The published code draws reals from 1 on, so that one of them is never seen.
    """
    return torch.randint(first, windows.numel(), (count,), generator=random, device=windows.device)


def real_items(windows: Tensor, chosen: Tensor, vocabulary: int) -> Tensor:
    """The chosen real items of windows (B, L), shape (items, L, vocabulary)."""
    rows, length = windows.shape
    slots = torch.arange(length, device=windows.device)
    source = slots - (length - 1 - chosen // rows)[:, None]
    tokens = windows[(chosen % rows)[:, None], source.clamp(min=0)]
    one_hot_or_padding = torch.eye(vocabulary + 1, vocabulary, device=windows.device)
    return one_hot_or_padding[torch.where(source < 0, vocabulary, tokens)]


def fake_items(windows: Tensor, soft: Tensor, chosen: Tensor) -> Tensor:
    """The chosen fake items, from soft predictions (B, L, vocabulary)."""
    rows = len(windows)
    last = soft[chosen % rows, chosen // rows]
    before = real_items(windows, chosen, soft.shape[-1])[:, :-1]
    return torch.cat([before, last[:, None]], dim=1)
