"""A generator of which only a table of counts is left: at `position`, `k` of `n` draws hit.

The file is CSV with the columns position, n, k. Its first line says which text and which protocol it
belongs to, because counts for another text would silently give a wrong number:

    # ganlm counts, version 1, test sha256 <hex>, window 1000
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ganlm.generator import GeneratorError, Surroundings
from ganlm.measurement import Task

HEADER = re.compile(r"# ganlm counts, version 1, test sha256 ([0-9a-f]{64}), window (\d+)\s*")


@dataclass(frozen=True)
class CountTable:
    """Counts of hits by position, and the text they were counted on."""

    strength = "counts"
    workers = 1

    path: Path
    sha256: str
    window: int
    draws: int
    positions: np.ndarray
    hits: np.ndarray

    def checked(self, task: Task) -> np.ndarray:
        """Hits at every position of the text, -1 where there are none, if they belong to this text."""
        if self.sha256 != task.text.sha256:
            raise GeneratorError(
                f"{self.path} was counted on a text with sha256 {self.sha256}, "
                f"but the test part has {task.text.sha256}"
            )
        if self.window != task.protocol.window:
            raise GeneratorError(
                f"{self.path} was counted with windows of {self.window}, not under {task.protocol.name}"
            )
        if self.positions.max() >= len(task.tokens):
            raise GeneratorError(f"{self.path} has position {self.positions.max()}, past the end of the text")
        everywhere = np.full(len(task.tokens), -1)
        everywhere[self.positions] = self.hits
        return everywhere


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> CountTable:  # noqa: ARG001
    """Read and check the table."""
    path = Path(parameters["file"])
    with path.open(encoding="utf-8", errors="replace") as lines:
        header = HEADER.fullmatch(lines.readline())
        if not header:
            raise GeneratorError(
                f"{path}: the first line is not "
                "`# ganlm counts, version 1, test sha256 <64 hexadecimal digits>, window <tokens>`"
            )
        try:
            table = pd.read_csv(lines, dtype=np.int64, index_col=False)
        except (ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())
            raise GeneratorError(f"{path}: not a table of whole numbers ({reason})") from None
    return _checked_table(path, header, table)


def _checked_table(path: Path, header: re.Match, table: pd.DataFrame) -> CountTable:
    if list(table.columns) != ["position", "n", "k"] or table.empty:
        raise GeneratorError(f"{path}: the columns must be position,n,k, with at least one row")
    if table["n"].nunique() != 1:
        raise GeneratorError(
            f"{path}: fixed-N estimators need one n, not {sorted(table['n'].unique().tolist())[:3]}"
        )
    bad = (
        (table["n"] < 1)
        | (table["k"] < 0)
        | (table["k"] > table["n"])
        | (table["position"] < 0)
        | table["position"].duplicated()
    )
    if bad.any():
        row = table[bad].iloc[0].to_dict()
        raise GeneratorError(f"{path}: impossible or repeated row {row}")
    positions, hits = table["position"].to_numpy(), table["k"].to_numpy()
    return CountTable(path, header[1], int(header[2]), int(table["n"].iloc[0]), positions, hits)
