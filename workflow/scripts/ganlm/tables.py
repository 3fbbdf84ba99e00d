"""From results to the frames that tables show."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ganlm.protocol import Protocol
from ganlm.summary import find

APPROACHES = {
    "uniform": "Baseline",
    "ngram": "n-gram",
    "lstm": "Language model",
    "seqgan": "GAN",
    "recurrent_gan": "GAN",
    "python": "Own generator",
    "command": "Own generator",
    "counts": "Own generator",
}
ORDER = ("Language model", "Diffusion", "n-gram", "GAN", "Own generator", "Baseline")
MEASURED, QUOTED, NOT_RUN = "measured", "quoted", "not yet run"
MIXED = "Mixed with uniform"
FIRST_VERSION = "First version"
NOTE = "Note"
BPC, PERPLEXITY = "BPC", "Perplexity"
SEEDS, SPREAD = "Seeds", "SD over seeds, bits"
OPTIONAL = (MIXED, FIRST_VERSION, SEEDS, SPREAD, NOTE)
EXACT, FROM_SAMPLES = "exact", "harmonic"
PUBLISHED = ("mean-softmax", "plug-in")
CORRECTIONS = ("mean-softmax-bias",)
UNKNOWN = "?"
# Tokens that were never drawn make an estimate too low: the first of a pair, the second, or both.
MISSED = {(False, False): "", (True, False): "≥ ", (False, True): "≤ ", (True, True): "~ "}


@dataclass(frozen=True)
class Metric:
    """How a number of bits per token is shown."""

    name: str
    digits: int
    exponentiate: bool

    @classmethod
    def of_unit(cls, unit: str) -> "Metric":
        """Bits per character, or perplexity per word."""
        return cls(PERPLEXITY, 1, True) if unit == "word" else cls(BPC, 3, False)

    def show(self, bits: float | None) -> str:
        """As text; a number that a result file could not hold, as it is not finite, as UNKNOWN."""
        if bits is None or np.isnan(bits):
            return UNKNOWN
        return f"{np.exp2(bits) if self.exponentiate else bits:.{self.digits}f}"

    def interval(self, result: dict) -> str:
        """The interval of a result, as text."""
        return f"[{self.show(result['low'])}, {self.show(result['high'])}]"


def table1(
    summaries: dict[str, dict],
    models: dict[str, dict],
    windows: list,
    metric: Metric,
    literature: pd.DataFrame,
) -> pd.DataFrame:
    """The paper's Table 1: of every approach the quoted results, then the models of this run.

    `summaries` are those of the rows, so several seeds are one already (`seeds.pooled`). Each model is shown
    at its own protocol. A published result that a model reproduces stands beside it, not in a row of its own.
    Published results are bits per character, so a table of perplexities quotes none.
    """
    if metric.exponentiate:
        literature = literature.iloc[:0]
    published = literature.set_index("id")
    rows = [
        _measured_row(name, block, summaries[name]["results"], windows, metric, published)
        for name, block in models.items()
    ]
    reproduced = {block["paper"] for block in models.values()}
    quoted = [_quoted_row(row, metric) for _, row in literature.iterrows() if row["id"] not in reproduced]
    frame = pd.DataFrame(quoted + rows, columns=list(rows[0])).fillna("")
    frame = frame.sort_values("Approach", key=lambda names: names.map(ORDER.index), kind="stable")
    frame = frame.reset_index(drop=True)
    return frame.drop(columns=[name for name in OPTIONAL if not any(frame[name])])


def metric_of(frame: pd.DataFrame) -> str:
    """The name of what a Table 1 shows."""
    return BPC if f"Direct {BPC}" in frame else PERPLEXITY


def compact(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 1 for a terminal or a phone: bits once, exact where they can be, and the paper's beside them.

    The last column says which draws a number comes from, or why there is none.
    """
    metric = metric_of(frame)
    direct = f"Direct {metric}"
    rows = [
        {
            "Model": row["Model"],
            "Protocol": row["Protocol"],
            metric: f"{row[direct]} {row['Interval']}" if row[direct] else row["From samples"],
            "Approx.": row[f"Approx. {metric}"],
            "Paper (approx.)": _both(row[f"Paper {metric}"], row["Paper approx."]),
            "Source": _short_source(row, direct),
        }
        for _, row in frame.iterrows()
    ]
    return pd.DataFrame(rows)


def _both(exact: str, approximate: str) -> str:
    return f"{exact} ({approximate})".strip() if approximate else exact


def _short_source(row: pd.Series, direct: str) -> str:
    if row["Source"] != MEASURED:
        return row["Source"]
    return "exact" if row[direct] else f"{row['N']} draws"


def table2(samples: list[dict], scores: list[dict], shown: int) -> pd.DataFrame:
    """The paper's Table 2: the first samples of every model, its %-IN-TEST-n beside the first of them."""
    rows = []
    for drawn, scored in zip(samples, scores, strict=True):
        shares = {f"%-IN-TEST-{score['order']}": _percent(score) for score in scored["in_test"]}
        for number, text in enumerate(drawn["samples"][:shown]):
            model, beside = (drawn["model"], shares) if number == 0 else ("", dict.fromkeys(shares, ""))
            rows.append({"Model": model, "Sample": text} | beside)
    return pd.DataFrame(rows)


def with_missing(frame: pd.DataFrame, missing: dict[str, str], column: str) -> pd.DataFrame:
    """A row for each model that could not be shown, with its reason in `column`."""
    rows = [{"Model": model, column: reason} for model, reason in missing.items()]
    return pd.concat([frame, pd.DataFrame(rows)])[list(frame)].fillna("") if rows else frame


def _percent(score: dict) -> str:
    """Share and standard error in percent; nothing where samples are shorter than the n-grams."""
    if score["share"] is None:
        return ""
    error = "" if score["standard_error"] is None else f" ± {100 * score['standard_error']:.1f}"
    return f"{100 * score['share']:.1f}{error}"


def _measured_row(
    name: str, block: dict, results: list[dict], windows: list, metric: Metric, published: pd.DataFrame
) -> dict:  # fmt: skip
    protocol = Protocol.parse(block["window"] or windows[0]).name
    exact, harmonic = find(results, protocol, EXACT), find(results, protocol, FROM_SAMPLES)
    draws = harmonic["draws"] if harmonic else None
    approximate = next(filter(None, (find(results, protocol, name, draws) for name in PUBLISHED)), None)
    shown = exact or harmonic or {}
    paper = published.loc[block["paper"]] if block["paper"] in published.index else {}
    return {
        "Approach": APPROACHES[block["kind"]],
        "Model": name,
        "Protocol": protocol,
        f"Direct {metric.name}": metric.show(exact["mean"]) if exact else "",
        "Interval": metric.interval(exact) if exact else "",
        f"Approx. {metric.name}": metric.show(approximate["mean"]) if approximate else "",
        "Approx. interval": metric.interval(approximate) if approximate else "",
        f"Paper {metric.name}": _published(paper),
        "Paper approx.": paper.get("approx_bpc", ""),
        FIRST_VERSION: _first_version(paper),
        SEEDS: str(shown.get("seeds", "")),
        SPREAD: f"{shown['spread']:.4f}" if "spread" in shown else "",
        "N": f"{approximate['draws']:,}" if approximate else "",
        "From samples": _from_samples(harmonic, metric) if harmonic else "",
        "Never hit": f"{harmonic['never_hit_share']:.2%}" if harmonic else "",
        MIXED: _mixed(results, protocol, metric),
        "Tokens": f"{shown['tokens']:,}" if shown else "",
        "Source": MEASURED,
        NOTE: paper.get("note", ""),
    }


def _mixed(results: list[dict], protocol: str, metric: Metric) -> str:
    """Bits of (1 - l) G + l Uniform, which are finite and known without bias, if the run asked for them."""
    mixtures = [result["estimand"] for result in results if result["estimand"].startswith("mixture-")]
    for estimator in ("exact", "ibs") if mixtures else ():
        if result := find(results, protocol, estimator, estimand=mixtures[0]):
            return f"{metric.show(result['mean'])} {metric.interval(result)}"
    return ""


def _from_samples(result: dict, metric: Metric) -> str:
    """The estimate whose bias is one-sided: a lower bound on average once a token was never hit."""
    at_least = "≥ " if result["never_hit_share"] > 0 else ""
    return f"{at_least}{metric.show(result['mean'])} {metric.interval(result)}"


def _published(row: pd.Series | dict) -> str:
    """A published number; an upper bound stays marked as one."""
    bound = "≤ " if row.get("bound") == "yes" else ""
    return f"{bound}{row['bpc']}" if row.get("bpc") else ""


def _first_version(row: pd.Series | dict) -> str:
    """What the paper's first version said, exact / approximate, as far as it did."""
    numbers = (row.get("first_bpc", ""), row.get("first_approx_bpc", ""))
    return " / ".join(number or "-" for number in numbers) if any(numbers) else ""


def _quoted_row(row: pd.Series, metric: Metric) -> dict:
    """What others published; a model of which the paper gives no number waits to be run."""
    has_number = any(row[column] for column in ("bpc", "approx_bpc", "first_bpc", "first_approx_bpc"))
    return {
        "Approach": row["approach"],
        "Model": row["model"],
        f"Paper {metric.name}": _published(row),
        "Paper approx.": row["approx_bpc"],
        FIRST_VERSION: _first_version(row),
        "Source": f"{QUOTED}: {row['citation']}" if has_number else NOT_RUN,
        NOTE: row["note"],
    }


def differences(frame: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Paired differences to the baseline, in bits per token, as text."""
    return pd.DataFrame(
        {
            "Protocol": frame["protocol"],
            "Model": frame["model"],
            f"Bits above {baseline}": [
                f"{'≥ ' if missed else ''}{mean:+.4f}"
                for mean, missed in zip(frame["mean"], frame["never_hit"], strict=True)
            ],
            "Interval": [
                f"[{low:+.4f}, {high:+.4f}]" for low, high in zip(frame["low"], frame["high"], strict=True)
            ],
            "Estimators": frame["estimators"],
            "Tokens": frame["tokens"].map("{:,}".format),
        }
    )


def pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """Every pair of models under one protocol, as text; MISSED says on which side draws were too few."""
    rows = []
    for pair in frame.itertuples():
        side = MISSED[bool(pair.missed), bool(pair.minus_missed)]
        known = pd.notna(pair.mean)
        rows.append(
            {
                "Model": pair.model,
                "Minus": pair.minus,
                "Bits": f"{side}{pair.mean:+.4f}" if known else "none",
                "Interval": f"[{pair.low:+.4f}, {pair.high:+.4f}]" if known else "",
                "Excludes 0": "yes" if pair.alone else "no",
                "Of all pairs": "yes" if pair.together else "no",
                "Estimators": pair.estimators if known else "",
                "Tokens": f"{pair.tokens:,.0f}" if known else "",
            }
        )
    return pd.DataFrame(rows)


def choose_n(found: list[dict], draws: int | str) -> pd.DataFrame:
    """What the paper's rule asks for, whether the run's N is enough by it, and what bits would take."""
    rows = []
    for result in found:
        enough = "" if draws == "chosen" else "yes" if (result["draws"] or np.inf) <= draws else "no"
        rows.append(
            {
                "Model": result["model"],
                "Chosen N": result["draws"] or "none",
                "First below": result["first_below"] or "none",
                "Enough draws": enough,
                "Slope": f"{result['slope']:.3f}",
                "c": f"{result['constant']:.4f}",
                "Crossing αc/γ'": f"{result['crossing']:.0f}",
                "Hoeffding N": f"{result['bounds']['hoeffding']:,}",
                "Bernstein N": f"{result['bounds']['bernstein']:,}",
            }
            | (_plan(result["plan"]) if result["plan"] else {})
        )
    return pd.DataFrame(rows).fillna("")


def _plan(plan: dict) -> dict:
    return {
        "Plan: half-width, bits": f"{plan['half_width']:.4f}"
        + ("" if plan["feasible"] else " (out of reach)"),
        "Plan: draws per token": f"{plan['draws_per_token']:.1f}",
        "Plan: cap": str(plan["cap"]),
        "Plan: bias, bits": f"{plan['expected_bias_bits']:.4f}",
        "Plan: Monte-Carlo SE": f"{plan['monte_carlo_se']:.4f}",
        "Plan: text SE": f"{plan['text_se']:.4f}",
    }


def estimators(points: pd.DataFrame) -> pd.DataFrame:
    """Bias and cost of every estimator on one model, as text."""
    return pd.DataFrame(
        {
            "Estimator": points["estimator"],
            "N or cap": points["draws"].map("{:,}".format),
            "Draws per token": points["draws_per_token"].map("{:,.1f}".format),
            "Bias, bits": points["bias"].map("{:+.4f}".format),
            "This run, bits": points["error"].map("{:+.4f}".format),
            "Monte-Carlo SE": points["monte_carlo_se"].map("{:.4f}".format),
            "Never hit": points["never_hit_share"].map("{:.2%}".format),
        }
    )


def estimates(summaries: list[dict]) -> pd.DataFrame:
    """Every estimate of every model, each with all that it takes to judge it; corrections are none."""
    rows = [
        {"Model": summary["model"]} | _estimate(result)
        for summary in summaries
        for result in summary["results"]
        if result["estimator"] not in CORRECTIONS
    ]
    return pd.DataFrame(rows)


def _estimate(result: dict) -> dict:
    at_most = "≤ " if result["estimand"] == "window" else ""
    return {
        "Protocol": result["protocol"],
        "Estimand": result["estimand"],
        "Estimator": result["estimator"],
        "N or cap": f"{result['draws']:,}" if result["draws"] else "",
        "Value": "inf" if result["mean"] is None else f"{at_most}{_number(result['mean'])}",
        "Unit": result["unit"],
        "Interval": f"[{_number(result['low'])}, {_number(result['high'])}]",
        "Text SE": _number(result["text_se"]),
        "Monte-Carlo SE": _drawing(result),
        "Draws per token": f"{result['draws_per_token']:.1f}" if result["draws_per_token"] else "",
        "Never hit": f"{result['never_hit_share']:.2%}",
        "Tokens": f"{result['tokens']:,}",
        "Block": f"{result['block_tokens']:,}" + ("" if result["plateau"] else " (no plateau)"),
    }


def _drawing(result: dict) -> str:
    """The Monte-Carlo error, if it is stated; one that rests on one group of draws is marked."""
    if result["one_group"]:
        return f"{_number(result['monte_carlo_se'])} (one group)"
    return "" if result["monte_carlo_se"] is None else _number(result["monte_carlo_se"])


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"
