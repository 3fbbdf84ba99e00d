"""SeqGAN's discriminator: convolutions of many widths, maximum over time, one highway layer.

The input is a sequence of tokens, so the embedding is folded into the filters first, and the convolution
adds rows of these tables: see `strongest_match`. The result is that of the published network (Yu et al.
2017), and so is the start: truncated normal filters and output, a highway layer with TensorFlow's default,
Glorot's uniform.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ganlm.models.strongest_match import StrongestMatches

WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
FILTERS = (100, 200, 200, 200, 200, 100, 100, 100, 100, 100, 160, 160)


class Discriminator(nn.Module):
    """Logits of a sequence being generated (0) or real (1)."""

    def __init__(self, vocabulary: int, length: int, embedding: int = 64, dropout: float = 0.25) -> None:
        super().__init__()
        used = [(width, filters) for width, filters in zip(WIDTHS, FILTERS, strict=True) if width <= length]
        features = sum(filters for _, filters in used)
        self.embedding = nn.Parameter(torch.empty(vocabulary, embedding).uniform_(-1, 1))
        self.filters = nn.ParameterList(_truncated(width, embedding, filters) for width, filters in used)
        self.biases = nn.ParameterList(nn.Parameter(torch.full((filters,), 0.1)) for _, filters in used)
        self.highway = nn.Linear(features, 2 * features)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(features, 2)
        for parameter in self.highway.parameters():
            nn.init.uniform_(parameter, -math.sqrt(3 / features), math.sqrt(3 / features))
        nn.init.trunc_normal_(self.output.weight, std=0.1, a=-0.2, b=0.2)
        nn.init.constant_(self.output.bias, 0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits for sequences of shape (rows, length)."""
        matches = StrongestMatches.apply(tokens, len(self.embedding), *self._tables())
        pooled = (matches + torch.cat(tuple(self.biases))).relu()
        candidate, gate = self.highway(pooled).chunk(2, dim=1)
        gate = gate.sigmoid()
        return self.output(self.dropout(gate * candidate.relu() + (1 - gate) * pooled))

    def real(self, tokens: Tensor) -> Tensor:
        """Probability of being real: the reward."""
        return self(tokens).float().softmax(dim=1)[:, 1]

    def penalty(self) -> Tensor:
        """Half the squared norm of the output layer, which is all that the published code regularises."""
        return (self.output.weight.square().sum() + self.output.bias.square().sum()) / 2

    def _tables(self) -> Iterator[Tensor]:
        """Of each width, W_j e(v) for all offsets j and tokens v, one product per offset."""
        with torch.autocast(self.embedding.device.type, enabled=False):
            for weight in self.filters:
                yield torch.bmm(self.embedding.expand(len(weight), -1, -1), weight).flatten(0, 1)


def _truncated(width: int, embedding: int, filters: int) -> nn.Parameter:
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(width, embedding, filters), std=0.1, a=-0.2, b=0.2))
