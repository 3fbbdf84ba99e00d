"""From the records of training to curves that can be drawn."""

from collections.abc import Mapping

import pandas as pd

COUNTERS = ("step", "epoch", "tokens", "seconds")


def curves(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Histories or rates by model, made long: model, epoch, quantity, value.

    Steps of one epoch are spread evenly over it, so that it ends at its number; what came before the first
    epoch, counted as epoch 0, ends at 0.
    """
    parts = []
    for model, table in tables.items():
        epochs = table.groupby("epoch")["epoch"]
        place = table["epoch"] - 1 + (epochs.cumcount() + 1) / epochs.transform("size")
        values = table.drop(columns=[name for name in COUNTERS if name in table])
        long = values.assign(model=model, epoch=place).melt(["model", "epoch"], var_name="quantity")
        parts.append(long.dropna(subset="value"))
    return pd.concat(parts, ignore_index=True)
