"""The uniform model: log2 |V| bits for every token, the upper end of every table."""

import numpy as np

from ganlm.generator import Explicit, Surroundings


class Uniform(Explicit):
    """Every token is equally likely, whatever came before. Its state is the number of rows."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def start(self, rows: int) -> int:
        """Nothing to remember but the shape."""
        return rows

    def predict(self, state: int) -> np.ndarray:
        """1/|V| everywhere."""
        return np.full((state, self.vocabulary), 1.0 / self.vocabulary)

    def feed(self, state: int, tokens: np.ndarray) -> int:  # noqa: ARG002
        """Reading changes nothing."""
        return state

    def surprisal(self, state: int, tokens: np.ndarray) -> tuple[np.ndarray, int]:
        """log2 |V| bits for each token."""
        return np.full(tokens.shape, np.log2(self.vocabulary)), state


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Uniform:  # noqa: ARG001
    """There is nothing to read."""
    return Uniform(surroundings.vocabulary)
