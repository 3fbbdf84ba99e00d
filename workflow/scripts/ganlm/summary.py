"""From the rows of a result file to the numbers that tables show, each with its interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ganlm.intervals import Blocks, Interval, interval, paired

BEST_FIRST = ("exact", "mean-softmax", "harmonic")
LABELS = ["protocol", "estimand", "estimator", "draws", "unit"]
FACTS = (
    *("mean", "low", "high", "level", "standard_error", "text_se", "monte_carlo_se", "one_group"),
    *("block_tokens", "blocks", "plateau", "tokens", "draws_per_token", "never_hit_share"),
)


def summarise(rows: pd.DataFrame, level: float, labels: Sequence[str] = LABELS) -> list[dict]:
    """One entry per protocol, estimand and estimator, or whatever else tells rows apart."""
    return [
        dict(zip(labels, values, strict=True)) | _reduce(group, level)
        for values, group in rows.groupby(list(labels), sort=False)
    ]


def _reduce(group: pd.DataFrame, level: float) -> dict:
    """The mean with its interval; draws and never-hit positions beside it.

    Block means contain the noise of drawing, so the interval does too; its share is stated apart. Bits are
    not negative, so neither is their lower bound.
    """
    least = 0.0 if (group["unit"] == "bits").all() else -np.inf
    group, shared = _shared_draws(group)
    drawing = group["variance"]
    known = None if drawing.isna().any() else drawing
    result = interval(Blocks(group["total"], group["tokens"], group["block"], known, shared), level)
    tokens = int(group["tokens"].sum())
    return {
        "mean": result.mean,
        "low": float(np.maximum(result.low, least)),
        "high": result.high,
        "level": level,
        "standard_error": result.standard_error,
        "text_se": result.text_se,
        "monte_carlo_se": result.monte_carlo_se,
        "one_group": result.one_group,
        "block_tokens": result.block_tokens,
        "blocks": result.blocks,
        "plateau": result.plateau,
        "tokens": tokens,
        "draws_per_token": float(group["drawn"].sum() / tokens),
        "never_hit_share": float(group["never_hit"].sum() / tokens),
    }


def _shared_draws(rows: pd.DataFrame) -> tuple[pd.DataFrame, tuple[np.ndarray, ...]]:
    """The estimates, and where blocks share their draws what each group of draws added to each of them."""
    estimates, added = rows[rows["group"] == 0], rows[rows["group"] > 0]
    if added.empty:
        return estimates, ()
    table = added.pivot(index="block", columns="group", values="total").loc[estimates["block"]]
    return estimates, (table.to_numpy(),)


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

    Each side is exact where its probabilities are known, else the mean softmax of a generator with noise, as
    in Table 1, else the harmonic estimate.
    """
    found = []
    for model, protocol in ((m, p) for m in rows if m != baseline for p in rows[m]["protocol"].unique()):
        ours, estimator = best(rows[model], protocol)
        theirs, reference = best(rows[baseline], protocol)
        result = difference(ours, theirs, level)
        if result is None:
            continue
        estimates = ours[ours["block"].isin(theirs["block"]) & (ours["group"] == 0)]
        tokens, missed = int(estimates["tokens"].sum()), int(estimates["never_hit"].sum())
        bounds = (result.mean, result.low, result.high)
        found.append((protocol, model, *bounds, f"{estimator} - {reference}", tokens, missed))
    columns = ["protocol", "model", "mean", "low", "high", "estimators", "tokens", "never_hit"]
    return pd.DataFrame(found, columns=columns)


def difference(
    ours: pd.DataFrame | None, theirs: pd.DataFrame | None, level: float, same_draws: bool = False
) -> Interval | None:
    """Rows of one estimate minus those of another, on the blocks that both have; None if there are none."""
    if ours is None or theirs is None:
        return None
    ours = ours[ours["block"].isin(theirs["block"])]
    theirs = theirs[theirs["block"].isin(ours["block"])]
    return None if ours.empty else paired(_blocks(ours), _blocks(theirs), level, same_draws=same_draws)


def chosen(
    rows: pd.DataFrame, protocol: str, estimator: str, draws: int | None = None
) -> pd.DataFrame | None:
    """The rows of an estimator under a protocol, for what the generator emits; None if there are none."""
    labels = {"protocol": protocol, "estimand": "sample", "estimator": estimator}
    labels |= {} if draws is None else {"draws": draws}
    found = rows[(rows[list(labels)] == list(labels.values())).all(axis=1)]
    return None if found.empty else found


def best(rows: pd.DataFrame, protocol: str) -> tuple[pd.DataFrame | None, str]:
    """The rows of the most exact estimate under a protocol."""
    for estimator in BEST_FIRST:
        if (found := chosen(rows, protocol, estimator)) is not None:
            return found, estimator
    return None, ""


def _blocks(rows: pd.DataFrame) -> Blocks:
    estimates, shared = _shared_draws(rows)
    return Blocks(estimates["total"], estimates["tokens"], estimates["block"], shared=shared)


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
    """Bias and cost of every estimator of one explicit model, fewest draws per token first.

    `bias` is the expectation, in closed form, minus the exact bits of the same text; `error` is what this
    run's draws gave instead, which differs from it by about `monte_carlo_se`. Of the plug-in estimates it
    takes the one with the run's own N, which the harmonic estimate shares.
    """
    results = [r for r in summary["results"] if (r["protocol"], r["estimand"]) == (protocol, "sample")]
    exact = find(results, protocol, "exact")["mean"]
    draws = next((r["draws"] for r in results if r["estimator"] == "harmonic"), None)
    of_run = [r for r in results if r["estimator"] != "plug-in" or draws in (None, r["draws"])]
    found = pd.DataFrame(
        {
            "estimator": r["estimator"],
            "draws": r["draws"],
            "draws_per_token": r["draws_per_token"],
            "bias": find(results, protocol, f"expected-{r['estimator']}", r["draws"])["mean"] - exact,
            "error": r["mean"] - exact,
            "monte_carlo_se": r["monte_carlo_se"],
            "never_hit_share": r["never_hit_share"],
        }
        for r in of_run
        if r["draws_per_token"] > 0 and r["unit"] == "bits"
    )
    return found.sort_values("draws_per_token", kind="stable", ignore_index=True)
