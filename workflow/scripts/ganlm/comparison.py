"""Models against each other, block by block: what is hard in the text is hard for both, and cancels."""

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from ganlm.summary import BEST_FIRST, best, differences, find

BOUNDS = ["mean", "low", "high"]
STANDING = ["protocol", "model", "estimator", "draws", *BOUNDS, "level", "tokens", "never_hit_share"]
PAIR = ["model", "minus", *BOUNDS, "alone", "together", "estimators", "tokens", "missed", "minus_missed"]


def arm_points(
    arm: str,
    epochs: Mapping[int, str],
    summaries: Mapping[str, dict],
    rows: Mapping[str, pd.DataFrame],
    protocol: str,
) -> pd.DataFrame:
    """Exact bits of an arm at every epoch, and how many they are above those of epoch 0.

    `epochs` leads from epochs to instances, `rows` are the blocks of the instances.
    """
    exact = {name: find(summaries[name]["results"], protocol, "exact") for name in epochs.values()}
    start = epochs[0]
    paired = differences({name: rows[name] for name in epochs.values()}, start, exact[start]["level"])
    paired = paired[paired["protocol"] == protocol].set_index("model")
    paired.loc[start, BOUNDS] = 0.0
    found = {"bits": pd.DataFrame(exact).T, "difference": paired}
    return pd.DataFrame(
        {"arm": arm, "kind": kind, "epoch": int(epoch)} | {key: float(table.loc[name, key]) for key in BOUNDS}
        for kind, table in found.items()
        for epoch, name in epochs.items()
    )


def standings(summaries: Mapping[str, dict]) -> pd.DataFrame:
    """The most exact estimate of every model under every protocol that it was measured with."""
    found = []
    for model, summary in summaries.items():
        results = summary["results"]
        for protocol in dict.fromkeys(result["protocol"] for result in results):
            known = filter(None, (find(results, protocol, estimator) for estimator in BEST_FIRST))
            if result := next(known, None):
                found.append(result | {"model": model})
    return pd.DataFrame(found, columns=STANDING).astype(dict.fromkeys(BOUNDS, float))


def ranked(points: pd.DataFrame, protocols: Iterable[str]) -> pd.DataFrame:
    """Fewest bits first within each protocol, protocols in this order as far as there are points."""
    ordered = points.sort_values("mean", kind="stable")
    return pd.concat([ordered[ordered["protocol"] == protocol] for protocol in protocols])


def pairs(rows: Mapping[str, pd.DataFrame], protocol: str, level: float) -> pd.DataFrame:
    """Every model minus every one that needs fewer bits, under one protocol, on the blocks that both have.

    `alone` says whether the interval of a pair excludes zero, `together` whether it still does when the
    chance of error is shared between all pairs (Bonferroni), so that no claim among them is luck. `missed`
    and `minus_missed` are the tokens of either side that were never drawn. Where both models give an
    infinite number of bits to the same block, there is no difference: its mean is nan.
    """
    known = {model: best(table, protocol)[0] for model, table in rows.items()}
    known = {model: table for model, table in known.items() if table is not None}
    by_bits = sorted(known, key=lambda model: _bits(known[model]))
    chosen = [(worse, better) for better, worse in combinations(by_bits, 2)]
    shared = 1 - (1 - level) / max(1, len(chosen))
    found = []
    for worse, better in chosen:
        ours, theirs = known[worse], known[better]
        alone, together = (_difference(worse, ours, better, theirs, chance) for chance in (level, shared))
        verdicts = {"alone": _excludes_zero(alone), "together": _excludes_zero(together)}
        missed = {"missed": _missed(ours), "minus_missed": _missed(theirs)}
        found.append(alone | {"model": worse, "minus": better} | verdicts | missed)
    return pd.DataFrame(found, columns=PAIR)


def _difference(worse: str, ours: pd.DataFrame, better: str, theirs: pd.DataFrame, level: float) -> dict:
    """One pair, as far as there is a difference."""
    infinite = [set(rows.loc[np.isinf(rows["total"]), "block"]) for rows in (ours, theirs)]
    if set.intersection(*infinite):
        return {}
    return next(iter(differences({worse: ours, better: theirs}, better, level).to_dict("records")), {})


def _bits(rows: pd.DataFrame) -> float:
    estimates = rows[rows["group"] == 0]
    return estimates["total"].sum() / estimates["tokens"].sum()


def _missed(rows: pd.DataFrame) -> int:
    return int(rows.loc[rows["group"] == 0, "never_hit"].sum())


def _excludes_zero(result: Mapping[str, float]) -> bool:
    """An interval that is not known excludes nothing."""
    return bool(result) and (result["low"] > 0 or result["high"] < 0)
