"""A generator that only emits samples: it copies what followed a random earlier occurrence of the context.

It never computes a probability. `draw` is all that the evaluator needs.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ganlm.corpus import Alphabet
from ganlm.generator import Sampled


class CopySampler(Sampled):
    """Find the last characters of the prefix somewhere in the training text and emit what came next."""

    def __init__(
        self,
        alphabet: Alphabet,
        seed: int,  # noqa: ARG002 (every call of `draw` brings its own random numbers)
        text: str,
        context: int = 4,
        shorten: float = 0.1,
    ) -> None:
        ids = {symbol: token for token, symbol in enumerate(alphabet.symbols)}
        self.text = np.array([ids[character] for character in Path(text).read_text()])
        self.context, self.shorten = context, shorten
        self.followers: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for length in range(context + 1):
            for end in range(length, len(self.text)):
                self.followers[tuple(self.text[end - length : end].tolist())].append(end)

    def draw(
        self, prefixes: Sequence[np.ndarray], counts: Sequence[int], rng: np.random.Generator
    ) -> list[np.ndarray]:
        """For each prefix, `count` ids: each draw picks a context length and one of its occurrences."""
        return [
            self._draw(prefix.tolist(), count, rng) for prefix, count in zip(prefixes, counts, strict=True)
        ]

    def _draw(self, prefix: list[int], count: int, rng: np.random.Generator) -> np.ndarray:
        lengths = self.context - np.minimum(rng.geometric(1 - self.shorten, count) - 1, self.context)
        drawn = np.empty(count, np.int64)
        for length in np.unique(lengths):
            places = self._occurrences(prefix, int(length))
            mine = lengths == length
            drawn[mine] = self.text[rng.choice(places, int(mine.sum()))]
        return drawn

    def _occurrences(self, prefix: list[int], length: int) -> np.ndarray:
        """Where the longest known context of at most this length goes on."""
        length = min(length, len(prefix))
        while tuple(prefix[len(prefix) - length :]) not in self.followers:
            length -= 1
        return np.array(self.followers[tuple(prefix[len(prefix) - length :])])
