"""From the rows of a result file to the numbers that tables show, each with its interval."""

import pandas as pd

from ganlm.intervals import Blocks, interval

LABELS = ["protocol", "estimand", "estimator", "draws"]


def summarise(rows: pd.DataFrame, level: float) -> list[dict]:
    """One entry per protocol, estimand and estimator."""
    return [
        dict(zip(LABELS, labels, strict=True)) | _reduce(group, level)
        for labels, group in rows.groupby(LABELS, sort=False)
    ]


def _reduce(group: pd.DataFrame, level: float) -> dict:
    blocks = Blocks(group["sum_bits"], group["tokens"], group["block"])
    result = interval(blocks, level)
    tokens = int(group["tokens"].sum())
    return {
        "bits_per_token": result.mean,
        "low": result.low,
        "high": result.high,
        "level": level,
        "standard_error": result.standard_error,
        "block_tokens": result.block_tokens,
        "blocks": result.blocks,
        "plateau": result.plateau,
        "tokens": tokens,
        "never_hit_share": float(group["never_hit"].sum() / tokens),
    }
