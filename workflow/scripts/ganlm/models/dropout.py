"""Dropout whose mask costs less than the layer that it acts on.

A CPU draws `torch.nn.Dropout`'s Bernoulli numbers one by one, which takes longer than the LSTM's forward
pass of them. Here every element gets 16 random bits instead, many of them from one random number.
"""

import torch
from torch import Tensor, nn

LEVELS = 2**16


class Dropout(nn.Module):
    """x / (1 - p) with probability 1 - p and else 0, in training; p is rounded to a multiple of 2^-16."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropped = min(round(share * LEVELS), LEVELS - 1)

    def forward(self, x: Tensor) -> Tensor:
        """Of the shape of x."""
        if not self.training or not self.dropped:
            return x
        levels = random_levels(x.numel(), x.device).view(x.shape)
        mask = torch.ge(levels, self.dropped - LEVELS // 2, out=torch.empty_like(x))
        return x * mask.mul_(LEVELS / (LEVELS - self.dropped))


def random_levels(count: int, device: torch.device) -> Tensor:
    """So many uniform numbers from -2^15 to 2^15 - 1, from the default generator."""
    words = torch.empty(-(-count // 4), dtype=torch.int64, device=device)
    return words.random_(torch.iinfo(torch.int64).min, None).view(torch.int16)[:count]
