"""The Recurrent GAN of Press et al. (2017): a GRU whose only randomness is its first state, and its critic.

The GRU is TensorFlow 1's, whose reset gate acts before the recurrent product:

    [r, u] = σ(x W_g + h U_g + b_g),  c = tanh(x W_c + (r ∘ h) U_c + b_c),  h' = u ∘ h + (1 − u) ∘ c.

`nn.GRU` applies it after, and cuDNN's has no second derivative, which the critic's gradient penalty needs.
Inputs are tokens or mixtures of tokens, so embedding and W are multiplied first: the inputs of all steps are
then gathered from a table of |V| rows, or are one product with it, and only products with U are in the loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from ganlm.device import arithmetic, choose_device, choose_precision
from ganlm.generator import Latent, Surroundings
from ganlm.models.weights import load_weights

SPREAD = 0.1


@dataclass(frozen=True)
class Architecture:
    """Sizes of both networks, and the standard deviation of the noise."""

    hidden: int
    layers: int = 1
    noise_std: float = 10.0

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From a model's block in the config."""
        return cls(**{name: block[name] for name in cls.__dataclass_fields__})


class Gru(nn.Module):
    """One layer, which starts as TensorFlow's: Glorot's uniform kernels over [x, h], gates biased to 1."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        gates = nn.init.xavier_uniform_(torch.empty(inputs + hidden, 2 * hidden))
        candidate = nn.init.xavier_uniform_(torch.empty(inputs + hidden, hidden))
        self.inputs = nn.Parameter(torch.cat([gates[:inputs], candidate[:inputs]], dim=1))
        self.gates = nn.Parameter(gates[inputs:].clone())
        self.candidate = nn.Parameter(candidate[inputs:].clone())
        self.bias = nn.Parameter(torch.cat([torch.ones(2 * hidden), torch.zeros(hidden)]))

    def project(self, inputs: Tensor) -> Tensor:
        """What inputs bring to the gates r and u and to the candidate, whatever the state."""
        return inputs @ self.inputs + self.bias

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """The state after one more input; under autocast only the products are in low precision."""
        hidden = len(self.gates)
        gates, candidate = projected.split((2 * hidden, hidden), dim=-1)
        reset, update = (gates + self._product(state, self.gates)).sigmoid().chunk(2, dim=-1)
        candidate = (candidate + self._product(reset * state, self.candidate)).tanh()
        return torch.lerp(candidate, state, update)

    @staticmethod
    def _product(state: Tensor, weights: Tensor) -> Tensor:
        """In the precision of the weights."""
        return state.to(weights.dtype) @ weights

    def reduce_products(self) -> None:
        """From now on products with the state are in bfloat16; for inference only."""
        for weights in (self.gates, self.candidate):
            weights.data = weights.data.bfloat16()

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """The states after each of the inputs, shape (length, rows, hidden)."""
        states = []
        for one in projected.unbind():
            state = self.step(one, state)
            states.append(state)
        return torch.stack(states)


class Layers(nn.ModuleList):
    """GRU layers on top of each other, all starting from the same state."""

    @classmethod
    def of(cls, architecture: Architecture) -> Self:
        """Inputs have the size of the state."""
        return cls(Gru(architecture.hidden, architecture.hidden) for _ in range(architecture.layers))

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """The last layer's states, from what the inputs bring to the first."""
        first, *others = self
        states = first(projected, state)
        for layer in others:
            states = layer(layer.project(states), state)
        return states

    def step(self, projected: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Each layer's state after one more input."""
        first, *others = self
        after = [first.step(projected, states[0])]
        for layer, state in zip(others, states[1:], strict=True):
            after.append(layer.step(layer.project(after[-1]), state))
        return tuple(after)


class Generator(nn.Module):
    """Logits of the next token, given noise and the tokens so far."""

    def __init__(self, vocabulary: int, architecture: Architecture) -> None:
        super().__init__()
        self.noise_std = architecture.noise_std
        self.embedding = _uniform(vocabulary, architecture.hidden)
        self.start = _uniform(architecture.hidden)
        self.layers = Layers.of(architecture)
        self.output = nn.Linear(architecture.hidden, vocabulary)
        for parameter in self.output.parameters():
            nn.init.uniform_(parameter, -SPREAD, SPREAD)

    def table(self) -> Tensor:
        """What every token, and after them the start vector, brings to the first layer."""
        return self.layers[0].project(torch.cat([self.embedding, self.start[None]]))

    def noise(self, rows: int, random: torch.Generator) -> Tensor:
        """First states."""
        shape, device = (rows, len(self.start)), self.start.device
        return self.noise_std * torch.randn(shape, generator=random, device=device)

    def forward(self, windows: Tensor, noise: Tensor) -> Tensor:
        """Logits of each token of windows (rows, length), given the noise and the tokens before it."""
        start = torch.full_like(windows[:, :1], len(self.embedding))
        read = torch.cat([start, windows[:, :-1]], dim=1)
        states = self.layers(nn.functional.embedding(read.T, self.table()), noise)
        return self.output(states.transpose(0, 1))


class Critic(nn.Module):
    """A score of sequences of distributions, one-hot or soft; an all-zero vector is padding."""

    def __init__(self, vocabulary: int, architecture: Architecture) -> None:
        super().__init__()
        self.embedding = _uniform(vocabulary, architecture.hidden)
        self.layers = Layers.of(architecture)
        self.output = _uniform(architecture.hidden)
        self.bias = _uniform(1)

    def forward(self, items: Tensor) -> Tensor:
        """Scores of items (rows, length, vocabulary); a sum, because autocast would round a product."""
        first = self.layers[0]
        projected = items.transpose(0, 1) @ (self.embedding @ first.inputs) + first.bias
        states = self.layers(projected, items.new_zeros(len(items), len(self.output)))
        return (states[-1] * self.output).sum(dim=1) + self.bias


def _uniform(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-SPREAD, SPREAD))


class RecurrentGan(Latent):
    """A trained generator behind the evaluator's contract.

    Its state is one state per layer, with a row for each noise draw. States are in float32; `precision` is
    that of the products with them, which take nearly all of the time.
    """

    def __init__(
        self, network: Generator, device: torch.device, *, refeed: bool = False, precision: str = "float32"
    ) -> None:
        self.network = network.to(device).eval()
        self.device = device
        self.refeed = refeed
        self.arithmetic = arithmetic(precision, device)
        self.vocabulary = network.output.out_features
        if precision == "bfloat16":
            for layer in network.layers:
                layer.reduce_products()
        with torch.inference_mode():
            self._table = network.table()

    @torch.inference_mode()
    def start(self, draws: int, rng: np.random.Generator) -> tuple[Tensor, ...]:
        """All draws have read the start vector."""
        return self.network.layers.step(self._table[-1], self._noise(draws, rng))

    @torch.inference_mode()
    def predict(self, state: tuple[Tensor, ...]) -> np.ndarray:
        """Softmax of each draw, in double precision."""
        return self.network.output(state[-1]).double().softmax(dim=-1).cpu().numpy()

    @torch.inference_mode()
    def feed(self, state: tuple[Tensor, ...], token: int) -> tuple[Tensor, ...]:
        """All draws read the same token."""
        return self.network.layers.step(self._table[token], state)

    @torch.inference_mode()
    def sample(self, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """What inference emits: the most likely token of each noise draw, fed back, shape (rows, length).

        `refeed` does what the published code did: before each token the start vector and all tokens so far
        are read again, on top of the state that the last token left behind.
        """
        state = self._noise(rows, rng)
        tokens = [torch.full((rows,), self.vocabulary, device=self.device)]
        for _ in range(length):
            for token in tokens if self.refeed else tokens[-1:]:
                state = self.network.layers.step(self._table[token], state)
            tokens.append(self.network.output(state[-1]).argmax(dim=-1))
        return torch.stack(tokens, dim=1)[:, 1:].cpu().numpy()

    def _noise(self, rows: int, rng: np.random.Generator) -> tuple[Tensor, ...]:
        drawn = rng.standard_normal((rows, len(self.network.start)), dtype=np.float32)
        noise = torch.from_numpy(self.network.noise_std * drawn).to(self.device)
        return (noise,) * len(self.network.layers)


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> RecurrentGan:
    """The best generator on validation, or with `epoch` the one that was kept after that length."""
    network = Generator(surroundings.vocabulary, Architecture.parse(parameters))
    load_weights(network, files[0], parameters.get("epoch"))
    torch.set_num_threads(surroundings.workers)
    device = choose_device(surroundings.device)
    precision = choose_precision(surroundings.precision, device)
    return RecurrentGan(network, device, refeed=parameters.get("refeed", False), precision=precision)
