"""A generator for the benchmark, as a program and as a module: an n-gram model behind the command protocol.

    python benchmarks/bench_generator.py model.safetensors 8

It computes the distributions of a window when the window arrives, as a recurrent network would, and then
draws from them request by request. `NGramGenerator` is the same code without JSON and pipe.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "scripts"))

from ganlm.models.ngram import NGram, Settings

CONTEXTS_AT_ONCE = 50


class NGramGenerator:
    """Draws of the next token from a saved n-gram model."""

    def __init__(self, path: Path, order: int, vocabulary: int) -> None:
        self._model = NGram.load(path, vocabulary, Settings(order, "kneser-ney"))
        self._cumulative: list[np.ndarray] = []

    def read(self, windows: Sequence[Sequence[int]]) -> None:
        """Prepare the distribution at every position of the windows."""
        self._cumulative = [self._distributions(np.asarray(window, np.int64)) for window in windows]

    def draw(self, requests: Sequence[tuple[int, int, int]], seed: int) -> list[list[int]]:
        """For each (window, prefix length, n), n draws."""
        rng = np.random.default_rng(seed)
        return [
            self._cumulative[window][length].searchsorted(rng.random(count), side="right").tolist()
            for window, length, count in requests
        ]

    def _distributions(self, window: np.ndarray) -> np.ndarray:
        """Cumulative probabilities after every prefix; the last is exactly 1."""
        start = self._model.start(1)[0]
        text = np.concatenate([start, window])
        contexts = np.lib.stride_tricks.sliding_window_view(text, len(start))
        pieces = np.array_split(contexts, len(contexts) // CONTEXTS_AT_ONCE + 1)
        cumulative = np.cumsum(np.concatenate([self._model.predict(piece) for piece in pieces]), axis=1)
        return cumulative / cumulative[:, -1:]


def main() -> None:
    """Answer the evaluator until its output ends."""
    path, order = Path(sys.argv[1]), int(sys.argv[2])
    greeting = json.loads(sys.stdin.readline())
    generator = NGramGenerator(path, order, len(greeting["symbols"]))
    print(json.dumps({"ganlm": 1}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "windows" in message:
            generator.read(message["windows"])
        else:
            drawn = generator.draw(message["draw"], message["seed"])
            print(json.dumps({"id": message["id"], "drawn": drawn}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
