"""The LSTM language model behind SeqGAN: embedding, LSTM, linear, as in the published code.

Every weight starts from Normal(0, 0.1), biases included; the second bias vector that PyTorch adds to each
gate is zero and stays so. The first input is token 0, which on text8 is the space. Dropout acts on what
each layer hands upwards, never on the recurrent path.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ganlm.device import choose_device
from ganlm.generator import Explicit, Surroundings
from ganlm.models.dropout import Dropout
from ganlm.models.weights import load_weights

START = 0
STEPS_AT_ONCE = 128


@dataclass(frozen=True)
class Architecture:
    """Sizes of the network."""

    embedding: int
    hidden: int
    layers: int = 1
    dropout: float = 0.0

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From a model's block in the config."""
        return cls(**{name: block[name] for name in cls.__dataclass_fields__})


class LanguageModel(nn.Module):
    """Logits of the token after each input token."""

    def __init__(self, vocabulary: int, architecture: Architecture) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, architecture.embedding)
        self.lstm = nn.LSTM(
            architecture.embedding,
            architecture.hidden,
            architecture.layers,
            batch_first=True,
            dropout=architecture.dropout if architecture.layers > 1 else 0.0,
        )
        self.dropout = Dropout(architecture.dropout)
        self.output = nn.Linear(architecture.hidden, vocabulary)
        for name, parameter in self.named_parameters():
            nn.init.normal_(parameter, 0.0, 0.1)
            if name.startswith("lstm.bias_hh"):
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def forward(self, tokens: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple]:
        """Logits after each of `tokens`, shape (rows, length, vocabulary), and the state."""
        hidden, state = self.lstm(self.embedding(tokens), state)
        return self.output(self.dropout(hidden)), state


def shifted(windows: Tensor) -> Tensor:
    """What the network reads to predict `windows`: the start token, then all tokens but the last."""
    return torch.cat([torch.full_like(windows[:, :1], START), windows[:, :-1]], dim=1)


class Reading(NamedTuple):
    """Where a row is in its text: the LSTM's state, and the logits of the next token."""

    state: tuple[Tensor, Tensor]
    logits: Tensor


class Lstm(Explicit):
    """A trained network behind the evaluator's contract. It computes in float32."""

    def __init__(self, network: LanguageModel, device: torch.device) -> None:
        self.network = network.to(device).eval()
        self.device = device
        self.vocabulary = network.output.out_features

    @torch.inference_mode()
    def start(self, rows: int) -> Reading:
        """The network has read the start token."""
        logits, state = self.network(torch.full((rows, 1), START, device=self.device))
        return Reading(state, logits[:, -1])

    @torch.inference_mode()
    def predict(self, state: Reading) -> np.ndarray:
        """Softmax of the logits, in double precision."""
        return state.logits.double().softmax(dim=-1).cpu().numpy()

    @torch.inference_mode()
    def feed(self, state: Reading, tokens: np.ndarray) -> Reading:
        """Read on; reading nothing changes nothing."""
        if tokens.shape[1] == 0:
            return state
        logits, hidden = self.network(self._tensor(tokens), state.state)
        return Reading(hidden, logits[:, -1])

    @torch.inference_mode()
    def surprisal(self, state: Reading, tokens: np.ndarray) -> tuple[np.ndarray, Reading]:
        """Bits of every token, some steps at a time so that memory does not grow with the length."""
        bits = np.empty(tokens.shape)
        for start in range(0, tokens.shape[1], STEPS_AT_ONCE):
            piece = self._tensor(tokens[:, start : start + STEPS_AT_ONCE])
            logits, hidden = self.network(piece, state.state)
            before = torch.cat([state.logits[:, None], logits[:, :-1]], dim=1)
            log_p = before.log_softmax(dim=-1).gather(-1, piece[:, :, None])[:, :, 0]
            bits[:, start : start + STEPS_AT_ONCE] = -log_p.double().cpu().numpy() / np.log(2)
            state = Reading(hidden, logits[:, -1])
        return bits, state

    def _tensor(self, tokens: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(tokens, dtype=np.int64)).to(self.device)


def save(network: LanguageModel, path: Path) -> None:
    """Write the weights; nothing in such a file can run code."""
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, path)


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Lstm:
    """The model that training saved in `files`."""
    network = LanguageModel(surroundings.vocabulary, Architecture.parse(parameters))
    load_weights(network, files[0])
    return ready(network, surroundings)


def ready(network: LanguageModel, surroundings: Surroundings) -> Lstm:
    """A network with weights, behind the evaluator's contract."""
    torch.set_num_threads(surroundings.workers)
    return Lstm(network, choose_device(surroundings.device))
