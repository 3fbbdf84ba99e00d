"""The record of a training, step by step: what it found, and how fast it was.

Speed differs from run to run, so it goes to a file of its own: the history stays comparable byte by byte.
"""

from pathlib import Path

import pandas as pd

from ganlm.files import complete


def write(records: list[dict], seconds: list[float], history: Path | str, rates: Path | str) -> None:
    """The records, of which each names its `epoch` and `tokens`, and the seconds that each took."""
    table = pd.DataFrame(records)
    speed = table[["epoch", "tokens"]].assign(seconds=seconds, tokens_per_second=table["tokens"] / seconds)
    for path, frame in ((history, table), (rates, speed)):
        with complete(path) as temporary:
            frame.to_csv(temporary, index=False)
