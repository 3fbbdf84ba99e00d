"""Result files of evaluation: read, or refused if another version of the workflow wrote them."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ganlm.files import REMEDY, read_json
from ganlm.measurement import BLOCK_COLUMNS, Row
from ganlm.summary import FACTS, LABELS


def read_shard(path: Path | str) -> pd.DataFrame:
    """What one job measured: rows of blocks, and of bins of their tokens."""
    return _read(path, Row._fields)


def read_rows(path: Path | str) -> pd.DataFrame:
    """One row per block, estimand and estimator."""
    return _read(path, BLOCK_COLUMNS)


def _read(path: Path | str, columns: Sequence[str]) -> pd.DataFrame:
    try:
        rows = pd.read_csv(path)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is no table ({reason}): {REMEDY}") from None
    if list(rows.columns) != list(columns):
        differing = sorted(set(rows.columns) ^ set(columns)) or "their order"
        raise ValueError(
            f"{path} has other columns ({differing}), so another version of the workflow wrote it: {REMEDY}"
        )
    return rows


def read_summary(path: Path | str) -> dict:
    """The reduction of such rows."""
    summary = read_json(path, "model", "results")
    for result in summary["results"]:
        if missing := [key for key in (*LABELS, *FACTS) if key not in result]:
            raise ValueError(
                f"{path} has a result without {missing[0]!r}, so another version of the workflow wrote it: "
                f"{REMEDY}"
            )
    return summary
