"""What others published, from the columns of resources/literature.csv."""

from collections.abc import Iterable

import pandas as pd

VERSIONS = {"the paper": ("bpc", "approx_bpc"), "its first version": ("first_bpc", "first_approx_bpc")}


def published_gaps(literature: pd.DataFrame, draws: int) -> pd.DataFrame:
    """Approximate minus exact bits of the paper's models, in both of its versions, at its N."""
    parts = []
    for version, columns in VERSIONS.items():
        rows = literature.dropna(subset=list(columns))
        exact, approximate = (rows[column].to_numpy() for column in columns)
        known = {"model": rows["id"], "version": version, "draws": draws}
        parts.append(
            pd.DataFrame(
                known | {"bpc": exact, "approx_bpc": approximate, "gap": (approximate - exact).round(2)}
            )
        )
    return pd.concat(parts, ignore_index=True)


def comparable(literature: pd.DataFrame, protocols: Iterable[str]) -> pd.DataFrame:
    """Published bits that were measured under one of these protocols: exact ones, else approximate ones."""
    shown = literature[literature["protocol"].isin(list(protocols))]
    bits = shown["bpc"].fillna(shown["approx_bpc"])
    return pd.DataFrame(
        {"protocol": shown["protocol"], "model": shown["model"], "estimator": "quoted", "mean": bits}
    )
