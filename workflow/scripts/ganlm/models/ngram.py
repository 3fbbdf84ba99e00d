"""Interpolated n-gram language models: Witten-Bell and modified Kneser-Ney.

Both have the form P_k(w | h) = share(hw) + backoff(h) P_{k-1}(w | h'), where h' is h without its oldest
token and P_0 is uniform. A smoothing method is therefore nothing but two numbers per node of the trie,
and scoring does not know which method it uses. An unseen context backs off with weight one.

Kneser-Ney's lower orders are built from continuation counts, which are right only below a longer context:
at the start of a text, the longest context there is must take plain counts. So a method has two sets of
weights, `below` and `longest`, which for Witten-Bell are the same.

References: Witten and Bell (1991), method C; Chen and Goodman (1999), interpolated, modified Kneser-Ney.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ganlm.generator import Explicit, Surroundings
from ganlm.models.trie import ABSENT, ROOT, Level, Trie, count_ngrams


class Weights(NamedTuple):
    """The share of every node and the backoff of every context, level by level."""

    shares: tuple[np.ndarray, ...]
    backoffs: tuple[np.ndarray, ...]


class Smoothing(NamedTuple):
    """Weights below a longer context, and for the longest context there is."""

    below: Weights
    longest: Weights


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of an n-gram model."""

    order: int
    smoothing: str = "witten-bell"

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From a model's block in the config."""
        return cls(**{key: value for key, value in block.items() if key != "kind"})


class NGram(Explicit):
    """An interpolated n-gram model. Its state is the last order - 1 tokens of each row."""

    def __init__(self, trie: Trie, settings: Settings) -> None:
        self.trie = trie
        self.settings = settings
        self.vocabulary = trie.vocabulary
        self._smoothing = SMOOTHING[settings.smoothing](trie)

    @classmethod
    def train(cls, tokens: np.ndarray, vocabulary: int, settings: Settings) -> Self:
        """Count `tokens`. There is nothing to optimise, hence nothing random."""
        return cls(count_ngrams(tokens, settings.order, vocabulary), settings)

    def start(self, rows: int) -> np.ndarray:
        """The empty context: the first token of a window is a unigram prediction."""
        return np.full((rows, self.settings.order - 1), ABSENT)

    def feed(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Keep the last order - 1 tokens."""
        text = np.concatenate([state, tokens], axis=1)
        return text[:, text.shape[1] - state.shape[1] :]

    def predict(self, state: np.ndarray) -> np.ndarray:
        """Probability of every token after each row's context, which is walked once, not once per token."""
        candidates = np.arange(self.vocabulary)[None]
        known = (state != ABSENT).sum(axis=1)[:, None]
        probability = np.full((len(state), self.vocabulary), 1.0 / self.vocabulary)
        for length, context in enumerate(self._contexts(state), start=1):
            node = self.trie.find(length, context[:, None], candidates)
            probability = self._interpolated(length, context[:, None], node, known, probability)
        return probability

    def _contexts(self, state: np.ndarray) -> Iterator[np.ndarray]:
        """For k = 1..order the node of each row's last k - 1 tokens."""
        node = np.full((len(state), state.shape[1] + 1), ROOT)
        yield node[:, -1]
        for length in range(1, self.trie.order):
            node = self.trie.find(length, node[:, :-1], state[:, length - 1 :])
            yield node[:, -1]

    def surprisal(self, state: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits of every token of `tokens` at once: no loop over time."""
        return -np.log2(self._probabilities(state, tokens)), self.feed(state, tokens)

    def _probabilities(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """P(token | context) along each row, by walking all positions down the trie together.

        The k-gram that ends at a position is a child of the (k-1)-gram that ends one position earlier,
        so the nodes of one level are the contexts of the next.
        """
        text = np.concatenate([state, tokens], axis=1).astype(np.int64)
        probability = np.full(text.shape, 1.0 / self.vocabulary)
        context = np.full(text.shape, ROOT)
        known = np.cumsum(text != ABSENT, axis=1) - 1
        for length in range(1, self.trie.order + 1):
            node = self.trie.find(length, context, text)
            probability = self._interpolated(length, context, node, known, probability)
            context = np.concatenate([np.full((len(text), 1), ABSENT), node[:, :-1]], axis=1)
        return probability[:, state.shape[1] :]

    def _interpolated(
        self, length: int, context: np.ndarray, node: np.ndarray, known: np.ndarray, lower: np.ndarray
    ) -> np.ndarray:
        """share(hw) + backoff(h) P_{k-1}: what one more token of context makes of the lower order.

        `known` is the number of tokens before each position.
        """
        below, longest = self._smoothing
        share, backoff = _looked_up(below, length, context, node)
        if longest is not below and (at_start := known == length - 1).any():
            start_share, start_backoff = _looked_up(longest, length, context, node)
            share, backoff = (
                np.where(at_start, start_share, share),
                np.where(at_start, start_backoff, backoff),
            )
        return share + backoff * lower

    def save(self, path: Path) -> None:
        """Write the counts; the weights follow from them."""
        arrays = {}
        for length, level in enumerate(self.trie.levels, start=1):
            arrays[f"keys.{length}"] = level.keys
            arrays[f"counts.{length}"] = level.counts
        save_file(arrays, path)

    @classmethod
    def load(cls, path: Path, vocabulary: int, settings: Settings) -> Self:
        """Read what `save` wrote."""
        try:
            arrays: Mapping[str, np.ndarray] = load_file(path)
            levels = tuple(
                Level(arrays[f"keys.{length}"], arrays[f"counts.{length}"])
                for length in range(1, max(len(arrays) // 2, 1) + 1)
            )
        except (SafetensorError, KeyError) as error:
            raise ValueError(
                f"{path} holds no counts of n-grams ({error}): delete it to train again"
            ) from None
        return cls(Trie(vocabulary, levels), settings)


def _looked_up(
    weights: Weights, length: int, context: np.ndarray, node: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Share and backoff of k-grams and their contexts, where there are any."""
    share = np.where(node >= 0, weights.shares[length - 1][node], 0.0)
    backoff = np.where(context >= 0, weights.backoffs[length - 1][context], 1.0)
    return share, backoff


def witten_bell(trie: Trie) -> Smoothing:
    """share = c(hw) / (c(h) + T(h)), backoff = T(h) / (c(h) + T(h)), T = distinct followers of h."""
    shares, backoffs = [], []
    for length, contexts in enumerate(_context_sizes(trie), start=1):
        counts, parents = trie.levels[length - 1].counts, trie.parents(length)
        total = np.bincount(parents, counts, minlength=contexts)
        followers = np.bincount(parents, minlength=contexts)
        mass = np.maximum(total + followers, 1)
        shares.append(counts / mass[parents])
        backoffs.append(np.where(total > 0, followers / mass, 1.0))
    weights = Weights(tuple(shares), tuple(backoffs))
    return Smoothing(weights, weights)


def kneser_ney(trie: Trie) -> Smoothing:
    """Modified Kneser-Ney: absolute discounts D1, D2, D3+ and, below a longer context, continuation counts.

    share = (c - D(c)) / total, backoff = (D1 N1(h) + D2 N2(h) + D3 N3+(h)) / total, where c is the
    number of occurrences for the longest context and the number of distinct left neighbours below it.
    """
    plain = [level.counts for level in trie.levels]
    continuations = [_continuations(trie, length) for length in range(1, trie.order)]
    return Smoothing(_discounted(trie, [*continuations, plain[-1]]), _discounted(trie, plain))


def _discounted(trie: Trie, counts_by_level: list[np.ndarray]) -> Weights:
    shares, backoffs = [], []
    for length, contexts in enumerate(_context_sizes(trie), start=1):
        counts, parents = counts_by_level[length - 1], trie.parents(length)
        discount = _discounts(counts)[np.minimum(counts, 3)]
        total = np.bincount(parents, counts, minlength=contexts)
        freed = np.bincount(parents, discount, minlength=contexts)
        mass = np.maximum(total, 1)
        shares.append((counts - discount) / mass[parents])
        backoffs.append(np.where(total > 0, freed / mass, 1.0))
    return Weights(tuple(shares), tuple(backoffs))


SMOOTHING: dict[str, Callable[[Trie], Smoothing]] = {
    "witten-bell": witten_bell,
    "kneser-ney": kneser_ney,
}


def _context_sizes(trie: Trie) -> list[int]:
    """Number of contexts of length 0..order-1."""
    return [1, *(len(level.keys) for level in trie.levels[:-1])]


def _continuations(trie: Trie, length: int) -> np.ndarray:
    """Distinct left neighbours of each k-gram.

    A k-gram that only opens the text has no left neighbour; it keeps one, so that it stays possible.
    """
    nodes = len(trie.levels[length - 1].keys)
    return np.maximum(np.bincount(trie.suffixes[length], minlength=nodes), 1)


def _discounts(counts: np.ndarray) -> np.ndarray:
    """D(0..3+) from the counts of counts n1..n4; where they are too few, D = 1/2.

    Y = n1 / (n1 + 2 n2), D_i = i - (i + 1) Y n_{i+1} / n_i (Chen and Goodman 1999, equation 26).
    On little text D_i may come out at or below zero; it would leave nothing for unseen tokens.
    """
    too_few = np.array([0.0, 0.5, 0.5, 0.5])
    n = np.bincount(np.minimum(counts, 5), minlength=6)[:5].astype(float)
    if n[1:].min() == 0:
        return too_few
    y = n[1] / (n[1] + 2 * n[2])
    i = np.arange(1, 4)
    discounts = i - (i + 1) * y * n[2:5] / n[1:4]
    return np.concatenate([[0.0], discounts]) if discounts.min() > 0 else too_few


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> NGram:
    """The model that training saved in `files`."""
    return NGram.load(Path(files[0]), surroundings.vocabulary, Settings.parse(parameters))
