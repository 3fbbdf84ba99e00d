"""SeqGAN's discriminator: convolutions of many widths, maximum over time, one highway layer.

The input is a sequence of tokens, so the embedding is folded into the filters first, and the convolution
becomes a product of one-hot windows with these tables: |V| = 27 columns per token instead of 64, and no
gradient with respect to the input. The result is that of the published network (Yu et al. 2017), and so is
the start: truncated normal filters and output, a highway layer with TensorFlow's default, Glorot's uniform.
"""

import math

import torch
from torch import Tensor, nn

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
        one_hot = nn.functional.one_hot(tokens, len(self.embedding)).to(self._dtype(tokens))
        pooled = torch.cat(
            [
                self._pooled(one_hot, weight, bias)
                for weight, bias in zip(self.filters, self.biases, strict=True)
            ],
            dim=1,
        )
        candidate, gate = self.highway(pooled).chunk(2, dim=1)
        gate = gate.sigmoid()
        return self.output(self.dropout(gate * candidate.relu() + (1 - gate) * pooled))

    def real(self, tokens: Tensor) -> Tensor:
        """Probability of being real: the reward."""
        return self(tokens).float().softmax(dim=1)[:, 1]

    def penalty(self) -> Tensor:
        """Half the squared norm of the output layer, which is all that the published code regularises."""
        return (self.output.weight.square().sum() + self.output.bias.square().sum()) / 2

    def _pooled(self, one_hot: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """max over t of relu(Σ_j W_j e(x_{t+j}) + b), with the tables W_j e(·) made first."""
        width = len(weight)
        table = (self.embedding @ weight).transpose(0, 1).flatten(0, 1)
        windows = one_hot.unfold(1, width, 1).flatten(2)
        return ((windows @ table).amax(dim=1) + bias).relu()

    def _dtype(self, tokens: Tensor) -> torch.dtype:
        """One-hot vectors are exact in any precision: take the one that products are made in."""
        device = tokens.device.type
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else self.embedding.dtype


def _truncated(width: int, embedding: int, filters: int) -> nn.Parameter:
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(width, embedding, filters), std=0.1, a=-0.2, b=0.2))
