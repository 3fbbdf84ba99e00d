"""SeqGAN's discriminator: convolutions of many widths, maximum over time, one highway layer.

The input is a sequence of tokens, so the embedding is folded into the filters first, and the convolution
adds rows of these tables: see `strongest_match`. The result is that of the published network (Yu et al.
2017), and so is the start: truncated normal filters and output, a highway layer with TensorFlow's default,
Glorot's uniform.
"""

import math

import torch
from torch import Tensor, nn

from ganlm.models.dropout import Dropout
from ganlm.models.strongest_match import StrongestMatch

# Widths of the published filters by the number of filters of each.
WIDTHS = {100: (1, 6, 7, 8, 9, 10), 200: (2, 3, 4, 5), 160: (15, 20)}


class Discriminator(nn.Module):
    """Logits of a sequence being generated (0) or real (1)."""

    def __init__(self, vocabulary: int, length: int, embedding: int = 64, dropout: float = 0.25) -> None:
        super().__init__()
        fitting = {filters: tuple(w for w in widths if w <= length) for filters, widths in WIDTHS.items()}
        self.widths = {filters: widths for filters, widths in fitting.items() if widths}
        features = sum(filters * len(widths) for filters, widths in self.widths.items())
        self.embedding = nn.Parameter(torch.empty(vocabulary, embedding).uniform_(-1, 1))
        self.filters = nn.ParameterList(
            _truncated(embedding, sum(widths), filters) for filters, widths in self.widths.items()
        )
        self.bias = nn.Parameter(torch.full((features,), 0.1))
        self.highway = nn.Linear(features, 2 * features)
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(features, 2)
        for parameter in self.highway.parameters():
            nn.init.uniform_(parameter, -math.sqrt(3 / features), math.sqrt(3 / features))
        nn.init.trunc_normal_(self.output.weight, std=0.1, a=-0.2, b=0.2)
        nn.init.constant_(self.output.bias, 0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits for sequences of shape (rows, length), in full precision: sure verdicts differ by little."""
        tables = (self._table(filters) for filters in self.filters)
        pooled = (StrongestMatch.apply(tokens, tuple(self.widths.values()), *tables) + self.bias).relu()
        candidate, gate = self.highway(pooled).chunk(2, dim=1)
        gate = gate.sigmoid()
        mixed = self.dropout(gate * candidate.relu() + (1 - gate) * pooled)
        with torch.autocast(mixed.device.type, enabled=False):
            return self.output(mixed)

    def real(self, tokens: Tensor) -> Tensor:
        """Probability of being real: the reward."""
        return self(tokens).softmax(dim=1)[:, 1]

    def penalty(self) -> Tensor:
        """Half the squared norm of the output layer, which is all that the published code regularises."""
        return (self.output.weight.square().sum() + self.output.bias.square().sum()) / 2

    def _table(self, filters: Tensor) -> Tensor:
        """What every token adds at every offset of every width: W_j e(v), in one product."""
        with torch.autocast(filters.device.type, enabled=False):
            return (self.embedding @ filters.flatten(1)).view(len(self.embedding), *filters.shape[1:])


def _truncated(*shape: int) -> nn.Parameter:
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(shape), std=0.1, a=-0.2, b=0.2))
