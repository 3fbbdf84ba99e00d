"""The contract: all that the evaluator may ask of a text generator.

A prefix is the window so far, without any start token: how a model starts (a space, a learned vector,
an empty context) is its own business. Arrays are NumPy arrays; rows are independent texts.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

State = Any


class Explicit(ABC):
    """A generator whose next-token distribution is known exactly.

    The state stands for everything read so far. `start`, `predict` and `feed` suffice; `surprisal` has
    a slow default that a model overrides when it can score many positions at once.
    """

    vocabulary: int

    @abstractmethod
    def start(self, rows: int) -> State:
        """State before the first token, for `rows` independent texts."""

    @abstractmethod
    def predict(self, state: State) -> np.ndarray:
        """Probabilities of the next token, shape (rows, vocabulary)."""

    @abstractmethod
    def feed(self, state: State, tokens: np.ndarray) -> State:
        """State after reading `tokens`, shape (rows, length)."""

    def surprisal(self, state: State, tokens: np.ndarray) -> tuple[np.ndarray, State]:
        """Bits −log2 p of each token given the state and the tokens before it, and the state after."""
        bits = np.empty(tokens.shape)
        for position in range(tokens.shape[1]):
            column = tokens[:, position : position + 1]
            gold = np.take_along_axis(self.predict(state), column.astype(np.int64), axis=1)
            with np.errstate(divide="ignore"):
                bits[:, position] = -np.log2(gold[:, 0])
            state = self.feed(state, column)
        return bits, state

    def sample(self, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """Ancestral samples from the start state, shape (rows, length)."""
        tokens = np.empty((rows, length), np.int64)
        state = self.start(rows)
        for position in range(length):
            cumulative = np.cumsum(self.predict(state), axis=1)
            uniform = rng.random((rows, 1)) * cumulative[:, -1:]
            tokens[:, position] = (cumulative <= uniform).sum(axis=1)
            state = self.feed(state, tokens[:, position : position + 1])
        return tokens
