"""What the parts of the evaluator's benchmark share: a corpus, models, a task, and rows of the table."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "scripts"))

from ganlm.corpus import Corpus, load_tokens
from ganlm.measurement import Settings, Task, Text, tasks
from ganlm.models.ngram import NGram
from ganlm.models.ngram import Settings as NGramSettings

DRAWS = 2000
WINDOW = 1000
EVALUATION = Settings(
    block=1000,
    draws=DRAWS,
    draws_grid=(),
    cap=2000,
    estimators=(),
    pseudocount=0.5,
    mixture=0.0,
    characters=None,
    explicit_characters=None,
    seed=1,
)


class Line(NamedTuple):
    """A row of the table; `required` is empty where nothing is."""

    quantity: str
    measured: str
    required: str = ""
    met: bool | None = None


def print_table(lines: Iterable[Line]) -> None:
    """Print Markdown, each row as soon as it is measured."""
    print("| quantity | measured | required | met |\n|---|---|---|---|")
    for line in lines:
        met = {True: "yes", False: "NO", None: ""}[line.met]
        print(f"| {line.quantity} | {line.measured} | {line.required} | {met} |", flush=True)


@dataclass(frozen=True)
class Bench:
    """The corpus in a scratch folder, and how long to measure."""

    folder: Path
    corpus: Corpus
    tokens: int
    repeats: int

    @property
    def vocabulary(self) -> int:
        """Size of the alphabet."""
        return len(self.corpus.alphabet)

    def part(self, name: str) -> np.ndarray:
        """Tokens of a part."""
        return load_tokens(self.folder / f"{name}.npy")

    def saved_model(self, order: int) -> Path:
        """An n-gram model of the train part, trained once."""
        path = self.folder / f"{order}-gram.safetensors"
        if not path.exists():
            NGram.train(self.part("train"), self.vocabulary, NGramSettings(order)).save(path)
        return path

    def model(self, order: int) -> NGram:
        """The saved model."""
        return NGram.load(self.saved_model(order), self.vocabulary, NGramSettings(order))

    def task(
        self, strength: str, tokens: np.ndarray, shard: tuple[int, int] = (1, 1), **settings: object
    ) -> Task:
        """One task on `tokens`."""
        text = Text(tokens, self.corpus.sha256["test"], self.vocabulary)
        (task,) = tasks("bench", strength, text, [WINDOW], replace(EVALUATION, **settings), shard)
        return task


def at_most(quantity: str, ratio: float, limit: float) -> Line:
    """A ratio with an upper limit."""
    return Line(quantity, f"{ratio:.3f}", f"at most {limit:g}", ratio <= limit)


def at_least(quantity: str, ratio: float, limit: float) -> Line:
    """A ratio with a lower limit."""
    return Line(quantity, f"{ratio:,.0f}", f"at least {limit:,}", ratio >= limit)
