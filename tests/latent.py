"""Latent generators whose exact bits are known: the noise picks one of finitely many distributions."""

import weakref

import numpy as np

from ganlm.generator import Latent


class Finite(Latent):
    """The noise picks the kind in a table p[kind, last token + 1, token]; row 0 is for the first token."""

    def __init__(self, p: np.ndarray) -> None:
        self.p, self.vocabulary = p, p.shape[-1]
        self.started, self.fed = 0, 0

    @classmethod
    def random(cls, sharpness: float, vocabulary: int = 6, kinds: int = 64) -> "Finite":
        rng = np.random.default_rng(3)
        shape = (vocabulary + 1, vocabulary)
        logits = rng.normal(size=shape) + sharpness * rng.normal(size=(kinds, *shape))
        p = np.exp(logits)
        return cls(p / p.sum(axis=-1, keepdims=True))

    def start(self, draws, rng):
        self.started += 1
        return rng.integers(len(self.p), size=draws), 0

    def feed(self, state, token):
        assert type(token) is int
        self.fed += 1
        return state[0], token + 1

    def predict(self, state):
        return self.p[state]

    def gold(self, tokens: np.ndarray, window: int) -> np.ndarray:
        """p of each token of a text given each kind of noise, (kinds, tokens)."""
        contexts = np.concatenate([[0], tokens[:-1].astype(np.int64) + 1])
        contexts[::window] = 0
        return self.p[:, contexts, tokens]

    def modes(self, tokens: np.ndarray, window: int) -> np.ndarray:
        """Whether each token is the most likely one given each kind of noise, (kinds, tokens)."""
        contexts = np.concatenate([[0], tokens[:-1].astype(np.int64) + 1])
        contexts[::window] = 0
        return self.p[:, contexts].argmax(axis=2) == tokens


class Counted(Finite):
    """Knows how many of its states were alive at once."""

    class State:
        """Something that can be referred to weakly."""

        def __init__(self, content: tuple) -> None:
            self.content = content

    def __init__(self, p: np.ndarray) -> None:
        super().__init__(p)
        self.alive, self.most = weakref.WeakSet(), 0

    def remember(self, content):
        state = self.State(content)
        self.alive.add(state)
        self.most = max(self.most, len(self.alive))
        return state

    def start(self, draws, rng):
        return self.remember(super().start(draws, rng))

    def feed(self, state, token):
        return self.remember(super().feed(state.content, token))

    def predict(self, state):
        return super().predict(state.content)
