"""The contract: all that the evaluator may ask of a text generator, in three strengths.

Explicit: the distribution of the next token is known. Latent: it is known given a noise draw. Sampled: only
draws of the next token can be had. A generator implements the strongest that it can.

A prefix is the window so far, without any start token: how a model starts (a space, a learned vector,
an empty context) is its own business. Arrays are NumPy arrays; rows are independent texts; tokens are int64,
so that arithmetic on them does not wrap.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ganlm.corpus import Alphabet

State = Any
ROUNDING = 1e-3


class GeneratorError(ValueError):
    """A generator broke the contract; the message says what it did."""


@dataclass(frozen=True)
class Surroundings:
    """What a generator is told when it is loaded."""

    alphabet: Alphabet
    seed: int = 1
    workers: int = 1
    device: str = "auto"
    precision: str = "float32"

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return len(self.alphabet)


class Explicit(ABC):
    """A generator whose next-token distribution is known exactly.

    The state stands for everything read so far. `start`, `predict` and `feed` suffice; `surprisal` has
    a slow default that a model overrides when it can score many positions at once.
    """

    strength = "explicit"
    workers = 1
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
            p = checked_distributions(self.predict(state), len(tokens), self.vocabulary)
            gold = np.take_along_axis(p, column.astype(np.int64), axis=1)
            with np.errstate(divide="ignore"):
                bits[:, position] = -np.log2(gold[:, 0])
            state = self.feed(state, column)
        return bits, state

    def distributions(
        self, windows: np.ndarray, first: int = 0, stride: int = 1
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The distribution at every `stride`-th position, from `first` on, of windows (rows, length)."""
        state = self.start(len(windows))
        if first:
            state = self.feed(state, windows[:, :first])
        for position in range(first, windows.shape[1], stride):
            yield position, checked_distributions(self.predict(state), len(windows), self.vocabulary)
            state = self.feed(state, windows[:, position : position + stride])

    def sample(self, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """Ancestral samples from the start state, shape (rows, length)."""
        tokens = np.empty((rows, length), np.int64)
        state = self.start(rows)
        for position in range(length):
            p = checked_distributions(self.predict(state), rows, self.vocabulary)
            cumulative = np.cumsum(p, axis=1)
            uniform = rng.random((rows, 1)) * cumulative[:, -1:]
            tokens[:, position] = (cumulative <= uniform).sum(axis=1)
            state = self.feed(state, tokens[:, position : position + 1])
        return tokens


class Latent(ABC):
    """A generator whose next-token distribution is known once its noise is drawn.

    A state belongs to one prefix and to many noise draws at once: row i of every answer is the i-th draw. The
    evaluator walks through the tree of all prefixes of a text and feeds each of them once. `start`, `predict`
    and `feed` suffice; a model that emits something else than sampled tokens overrides `sample`.
    """

    strength = "latent"
    workers = 1
    vocabulary: int

    @abstractmethod
    def start(self, draws: int, rng: np.random.Generator) -> State:
        """State of `draws` independent noise draws before the first token."""

    @abstractmethod
    def predict(self, state: State) -> np.ndarray:
        """Probabilities of the next token given each draw, shape (draws, vocabulary)."""

    @abstractmethod
    def feed(self, state: State, token: int) -> State:
        """State after all draws have read the same token; the old one stays valid, other tokens follow it."""

    def sample(self, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """Texts that it emits, each from a noise draw of its own, shape (rows, length)."""
        tokens = np.empty((rows, length), np.int64)
        for text in tokens:
            state = self.start(1, rng)
            for position in range(length):
                cumulative = np.cumsum(checked_distributions(self.predict(state), 1, self.vocabulary))
                text[position] = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
                state = self.feed(state, int(text[position]))
        return tokens


class Sampled(ABC):
    """A generator of which only draws of the next token can be had."""

    strength = "sampled"
    workers = 1
    vocabulary: int

    @abstractmethod
    def draw(
        self, prefixes: Sequence[np.ndarray], counts: Sequence[int], rng: np.random.Generator
    ) -> Sequence[Sequence[int]]:
        """For each prefix, as many independent draws of the next token id as its count says."""

    def draw_in_windows(
        self, windows: Sequence[np.ndarray], requests: Sequence[tuple[int, int, int]], seed: int
    ) -> list[np.ndarray]:
        """Draws for (window, length of prefix, count) triples, checked."""
        windows = [np.asarray(window, np.int64) for window in windows]
        prefixes = [windows[window][:length] for window, length, _ in requests]
        counts = [count for _, _, count in requests]
        drawn = self.draw(prefixes, counts, np.random.default_rng(seed))
        return checked_draws(drawn, counts, self.vocabulary)


def checked_distributions(p: np.ndarray, rows: int, vocabulary: int) -> np.ndarray:
    """The distributions, if they are: one per row, none negative, each adding up to 1 but for rounding."""
    if np.shape(p) != (rows, vocabulary):
        raise GeneratorError(
            f"the generator's `predict` answered shape {np.shape(p)}, not {(rows, vocabulary)}"
        )
    if not (np.all(p >= 0) and np.all(np.abs(np.sum(p, axis=1) - 1) < ROUNDING)):
        raise GeneratorError(
            "the generator's `predict` answered rows that are no distributions: NaN, "
            "negative, or not adding up to 1"
        )
    return p


def checked_draws(drawn: object, counts: Sequence[int], vocabulary: int) -> list[np.ndarray]:
    """The draws as arrays, if they are token ids in the numbers asked for."""
    try:
        arrays = [np.asarray(ids) for ids in drawn]
    except (TypeError, ValueError):
        raise GeneratorError(f"the generator answered {drawn!r:.200}, not lists of token ids") from None
    if len(arrays) != len(counts):
        raise GeneratorError(f"the generator answered {len(arrays)} prefixes instead of {len(counts)}")
    for ids, count in zip(arrays, counts, strict=True):
        if ids.shape != (count,):
            raise GeneratorError(f"the generator answered {ids.size} draws where {count} were asked for")
    not_whole = [ids for ids in arrays if ids.size and ids.dtype.kind not in "iu"]
    drawn = np.concatenate(not_whole[:1] or [np.empty(0, np.int64), *arrays])
    if not_whole or np.any((drawn < 0) | (drawn >= vocabulary)):
        wrong = next((i for i in drawn.tolist() if i not in range(vocabulary)), drawn.tolist()[0])
        raise GeneratorError(
            f"the generator drew {wrong!r}; token ids are whole numbers from 0 to {vocabulary - 1}"
        )
    return [ids.astype(np.int64, copy=False) for ids in arrays]
