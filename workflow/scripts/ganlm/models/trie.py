"""Counts of all k-grams of a text, k = 1..n, as a trie that is stored level by level.

A k-gram is a node of level k. Its key is `parent * vocabulary + token`, where `parent` is the index of
its first k - 1 tokens in level k - 1, so that keys fit 64 bits for any vocabulary and any order, and each
level is sorted. All work is array work: there is no Python loop over tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ROOT = 0
ABSENT = -1


@dataclass(frozen=True)
class Level:
    """The k-grams of one length: sorted keys and how often each occurs."""

    keys: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Trie:
    """All k-grams of a text with their counts; `levels[k - 1]` holds the k-grams."""

    vocabulary: int
    levels: tuple[Level, ...]

    @property
    def order(self) -> int:
        """Length of the longest k-grams."""
        return len(self.levels)

    def parents(self, length: int) -> np.ndarray:
        """Index in level `length - 1` of each `length`-gram's prefix."""
        return self.levels[length - 1].keys // self.vocabulary

    def find(self, length: int, parent: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Index in level `length` of the children `token` of the nodes `parent`, or ABSENT.

        An ABSENT parent or a negative token has no child. Queries are looked up in sorted order: on a
        level of ten million keys that is several times faster than in text order, because neighbouring
        queries then touch neighbouring memory.
        """
        keys = self.levels[length - 1].keys
        query = np.where((parent < 0) | (token < 0), ABSENT, parent * self.vocabulary + token)
        wanted, back = np.unique(query, return_inverse=True)
        position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[position] == wanted, position, ABSENT)[back].reshape(query.shape)

    @cached_property
    def suffixes(self) -> tuple[np.ndarray, ...]:
        """For each level the index, one level down, of each k-gram without its first token."""
        links = [np.full(len(self.levels[0].keys), ROOT)]
        for length in range(2, self.order + 1):
            shorter = links[-1][self.parents(length)]
            token = self.levels[length - 1].keys % self.vocabulary
            links.append(self.find(length - 1, shorter, token))
        return tuple(links)


def count_ngrams(tokens: np.ndarray, order: int, vocabulary: int, chunk_tokens: int = 1 << 23) -> Trie:
    """Count every k-gram of `tokens`, k = 1..order.

    The n-grams starting at each position are packed into as few 64-bit words as hold them, sorted and
    tallied chunk by chunk. Shorter k-grams are prefixes of n-grams, so one sorted list yields all levels.
    The text is padded at its end with a digit that sorts first and never becomes a node: without it the
    last order - 1 positions would be lost. A text shorter than `order` yields as many levels as it has
    tokens: the others would be empty. Memory is that of a chunk plus the distinct n-grams.
    """
    if len(tokens) == 0:
        raise ValueError("cannot count n-grams of an empty text: the train part has no tokens")
    order = min(order, len(tokens))
    parts = [
        _tally(_pack(chunk, order, vocabulary + 1))
        for chunk in _overlapping_chunks(tokens, order, chunk_tokens)
    ]
    words = [np.concatenate(columns) for columns in zip(*(rows for rows, _ in parts), strict=True)]
    counts = np.concatenate([count for _, count in parts])
    del parts
    words, counts = _merge(words, counts)
    return Trie(vocabulary, tuple(_levels(words, counts, order, vocabulary + 1)))


def _overlapping_chunks(tokens: np.ndarray, order: int, size: int) -> Iterator[np.ndarray]:
    """Digits (token + 1, 0 = padding) of `size` start positions and the order - 1 tokens after them."""
    for start in range(0, len(tokens), size):
        chunk = tokens[start : start + size + order - 1].astype(np.int64) + 1
        missing = min(size, len(tokens) - start) + order - 1 - len(chunk)
        yield np.concatenate([chunk, np.zeros(missing, np.int64)])


def _digits_per_word(base: int) -> int:
    """How many digits of `base` fit a signed 64-bit integer."""
    return max(n for n in range(1, 64) if base**n <= np.iinfo(np.int64).max)


def _pack(digits: np.ndarray, order: int, base: int) -> list[np.ndarray]:
    """The n-gram at each start position as words of digits, most significant digit first."""
    per_word = _digits_per_word(base)
    starts = len(digits) - order + 1
    words = []
    for first in range(0, order, per_word):
        word = np.zeros(starts, np.int64)
        for offset in range(first, min(first + per_word, order)):
            word *= base
            word += digits[offset : offset + starts]
        words.append(word)
    return words


def _tally(words: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Distinct rows in ascending order, and how often each occurs."""
    if len(words) == 1:
        distinct, counts = np.unique(words[0], return_counts=True)
        return [distinct], counts
    return _merge(words, np.ones(len(words[0]), np.int64))


def _merge(words: list[np.ndarray], counts: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Sort rows and add the counts of equal ones. Stable sorting merges sorted runs in linear time."""
    if len(words) == 1:
        order = np.argsort(words[0], kind="stable")
    else:
        order = np.lexsort(words[::-1])
    words = [word[order] for word in words]
    first = np.flatnonzero(_changes(words))
    return [word[first] for word in words], np.add.reduceat(counts[order], first)


def _changes(columns: list[np.ndarray]) -> np.ndarray:
    """True where a row differs from the one before it."""
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _levels(words: list[np.ndarray], counts: np.ndarray, order: int, base: int) -> Iterator[Level]:
    """Level k = 1..order from the sorted distinct n-grams."""
    per_word = _digits_per_word(base)
    parent = np.zeros(len(counts), np.int64)
    changed = np.zeros(len(counts), bool)
    for length in range(1, order + 1):
        word_index, offset = divmod(length - 1, per_word)
        width = min(per_word, order - word_index * per_word)
        prefix = words[word_index] // base ** (width - 1 - offset)
        digit = prefix % base
        changed |= _changes([prefix])
        first = np.flatnonzero(changed & (digit > 0))
        yield Level(
            keys=parent[first] * (base - 1) + digit[first] - 1,
            counts=np.add.reduceat(np.where(digit > 0, counts, 0), first),
        )
        parent = np.cumsum(changed & (digit > 0)) - 1
