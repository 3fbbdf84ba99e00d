"""Where the bits go: what the tokens of every bin add to a model's bits, and to the paper's gap."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ganlm.bins import EXPECTED_PLUG_IN, PLUG_IN, POSITION
from ganlm.measurement import WHOLE
from ganlm.summary import BEST_FIRST, LABELS, summarise

KEYS = ["protocol", "view", "estimand", "estimator", "draws", "unit", "bin", "block", "group"]
PLUG_INS = (PLUG_IN, EXPECTED_PLUG_IN)
COLUMNS = [
    *("model", "protocol", "view", "bin", "estimator", "draws", "tokens", "token_share"),
    *("bits", "low", "high", "bits_share", "of_text", "gap", "never_hit"),
]


def gathered(shards: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The rows of bins of all shards, those of one bin and stretch added up: their sums are exact."""
    rows = pd.concat(shards)
    rows = rows[rows["view"] != WHOLE].sort_values(KEYS, kind="stable")
    first = np.flatnonzero(~rows.duplicated(KEYS))
    if not first.size:
        return rows[[*KEYS, "tokens", "total"]]
    sums = {name: np.add.reduceat(rows[name].to_numpy(), first) for name in ("tokens", "total")}
    return rows.iloc[first][KEYS].assign(**sums)


def profile(tables: Mapping[str, pd.DataFrame], level: float) -> pd.DataFrame:
    """One line per model, protocol, view and bin, from the gathered rows of each model.

    `bits` are those of a token in the bin, by the best estimate there is, with their interval where bins are
    positions. `of_text` is what the bin adds to the bits per token of the whole text, `gap` what the plug-in
    estimate adds to that, and `never_hit` the share of the text's tokens that are in the bin and among N
    draws never occur; for known probabilities the last two are expectations.
    """
    parts = [
        _lines(cut, level).assign(model=model, protocol=protocol, view=view)
        for model, rows in tables.items()
        for (protocol, view), cut in rows.groupby(["protocol", "view"], sort=False)
    ]
    shown = [part for part in parts if len(part)]
    return pd.concat(shown, ignore_index=True)[COLUMNS] if shown else pd.DataFrame(columns=COLUMNS)


def _lines(cut: pd.DataFrame, level: float) -> pd.DataFrame:
    measured = set(cut["estimator"])
    estimator = next((name for name in BEST_FIRST if name in measured), None)
    if estimator is None:
        return pd.DataFrame()
    mine = cut[cut["estimator"] == estimator]
    sums = mine[mine["group"] == 0].groupby("bin")[["tokens", "total"]].sum()
    others = cut[cut["group"] == 0]
    plug_in = others[others["estimator"].isin(PLUG_INS)].groupby("bin")["total"].sum()
    missed = others[others["unit"] == "tokens"].groupby("bin")["total"].sum()
    tokens, bits = sums["tokens"].sum(), sums["total"].sum()
    lines = pd.DataFrame(
        {
            "estimator": estimator,
            "draws": others["draws"].max(),
            "tokens": sums["tokens"],
            "token_share": sums["tokens"] / tokens,
            "bits": sums["total"] / sums["tokens"],
            "bits_share": sums["total"] / bits,
            "of_text": sums["total"] / tokens,
            "gap": (plug_in - sums["total"]) / tokens,
            "never_hit": missed / tokens,
        }
    )
    return lines.join(_intervals(mine, level)).reset_index()


def _intervals(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Of the bits at each position. A bin of probabilities is a bin of bits: they have no interval there."""
    if rows["view"].iloc[0] != POSITION:
        return pd.DataFrame(columns=["low", "high"], dtype=float)
    unstated = rows.assign(variance=np.nan, drawn=0.0, never_hit=0)
    found = pd.DataFrame(summarise(unstated, level, [*LABELS, "bin"]))
    return found.set_index("bin")[["low", "high"]]
