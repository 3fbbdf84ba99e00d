"""From the rows of a result file to the numbers that tables show, each with its interval."""

import pandas as pd

from ganlm.intervals import Blocks, interval, paired

LABELS = ["protocol", "estimand", "estimator", "draws", "unit"]


def summarise(rows: pd.DataFrame, level: float) -> list[dict]:
    """One entry per protocol, estimand and estimator."""
    return [
        dict(zip(LABELS, labels, strict=True)) | _reduce(group, level)
        for labels, group in rows.groupby(LABELS, sort=False)
    ]


def _reduce(group: pd.DataFrame, level: float) -> dict:
    """The mean with its interval; draws and never-hit positions beside it.

    Block means contain the noise of drawing, so the interval does too; its share is stated apart.
    """
    drawing = group["variance"]
    known = None if drawing.isna().any() else drawing
    result = interval(Blocks(group["total"], group["tokens"], group["block"], known), level)
    tokens = int(group["tokens"].sum())
    return {
        "mean": result.mean,
        "low": result.low,
        "high": result.high,
        "level": level,
        "standard_error": result.standard_error,
        "text_se": result.text_se,
        "monte_carlo_se": result.monte_carlo_se,
        "block_tokens": result.block_tokens,
        "blocks": result.blocks,
        "plateau": result.plateau,
        "tokens": tokens,
        "draws_per_token": float(group["drawn"].sum() / tokens),
        "never_hit_share": float(group["never_hit"].sum() / tokens),
    }


def find(
    results: list[dict], protocol: str, estimator: str, draws: int | None = None, estimand: str = "sample"
) -> dict | None:
    """The result of an estimator under a protocol, by default for what the generator emits."""
    for result in results:
        labels = (result["protocol"], result["estimand"], result["estimator"])
        if labels == (protocol, estimand, estimator) and draws in (None, result["draws"]):
            return result
    return None


def differences(rows: dict[str, pd.DataFrame], baseline: str, level: float) -> pd.DataFrame:
    """Each model minus the baseline, on the blocks that both have, within each protocol.

    Each side is exact where its probabilities are known, else the harmonic estimate.
    """
    found = []
    for model, protocol in ((m, p) for m in rows if m != baseline for p in rows[m]["protocol"].unique()):
        ours, estimator = _best(rows[model], protocol)
        theirs, reference = _best(rows[baseline], protocol)
        if ours is None or theirs is None:
            continue
        common = ours.index.intersection(theirs.index)
        if common.empty:
            continue
        result = paired(_blocks(ours.loc[common]), _blocks(theirs.loc[common]), level)
        tokens = int(ours.loc[common, "tokens"].sum())
        bounds = (result.mean, result.low, result.high)
        missed = int(ours.loc[common, "never_hit"].sum())
        found.append((protocol, model, *bounds, f"{estimator} - {reference}", tokens, missed))
    columns = ["protocol", "model", "mean", "low", "high", "estimators", "tokens", "never_hit"]
    return pd.DataFrame(found, columns=columns)


def _best(rows: pd.DataFrame, protocol: str) -> tuple[pd.DataFrame | None, str]:
    """The most exact estimate under a protocol, indexed by block."""
    for estimator in ("exact", "harmonic"):
        chosen = (
            (rows["protocol"] == protocol) & (rows["estimand"] == "sample") & (rows["estimator"] == estimator)
        )
        if chosen.any():
            return rows[chosen].set_index("block"), estimator
    return None, ""


def _blocks(rows: pd.DataFrame) -> Blocks:
    return Blocks(rows["total"], rows["tokens"], rows.index)


def gaps(summaries: list[dict], protocol: str) -> pd.DataFrame:
    """Plug-in minus exact bits at every N, expected and drawn, of each model that knows its exact bits."""
    found = []
    for summary in summaries:
        of_protocol = [
            r for r in summary["results"] if (r["protocol"], r["estimand"]) == (protocol, "sample")
        ]
        exact = next((r["mean"] for r in of_protocol if r["estimator"] == "exact"), None)
        drawn = {r["draws"]: r["mean"] for r in of_protocol if r["estimator"] == "plug-in"}
        expected = {r["draws"]: r["mean"] for r in of_protocol if r["estimator"] == "expected-plug-in"}
        found += [(summary["model"], n, expected[n] - exact, drawn[n] - exact) for n in sorted(expected)]
    return pd.DataFrame(found, columns=["model", "draws", "expected", "drawn"])


def estimator_errors(summary: dict, protocol: str) -> pd.DataFrame:
    """Estimate minus exact bits, its Monte-Carlo error, and draws per token, of one explicit model.

    Of the plug-in estimates it takes the one with the run's own N, which the harmonic estimate shares.
    """
    results = [r for r in summary["results"] if (r["protocol"], r["estimand"]) == (protocol, "sample")]
    exact = next(r["mean"] for r in results if r["estimator"] == "exact")
    draws = next((r["draws"] for r in results if r["estimator"] == "harmonic"), None)
    of_run = [r for r in results if r["estimator"] != "plug-in" or draws in (None, r["draws"])]
    return pd.DataFrame(
        {
            "estimator": r["estimator"],
            "bias": r["mean"] - exact,
            "monte_carlo_se": r["monte_carlo_se"],
            "draws_per_token": r["draws_per_token"],
            "never_hit_share": r["never_hit_share"],
        }
        for r in of_run
        if r["draws_per_token"] > 0 and r["unit"] == "bits"
    )
