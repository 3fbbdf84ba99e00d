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
    "python": "Own generator",
    "command": "Own generator",
    "counts": "Own generator",
}
MIXED = "Mixed with uniform"
EXACT, PUBLISHED, FROM_SAMPLES = "exact", "plug-in", "harmonic"


@dataclass(frozen=True)
class Metric:
    """How a number of bits per token is shown."""

    name: str
    digits: int
    exponentiate: bool

    @classmethod
    def of_unit(cls, unit: str) -> "Metric":
        """Bits per character, or perplexity per word."""
        return cls("Perplexity", 1, True) if unit == "word" else cls("BPC", 3, False)

    def show(self, bits: float) -> str:
        """As text."""
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
    """The paper's Table 1: quoted results, then the models of this run, each at its own protocol.

    A published result that a model reproduces stands beside it, not in a row of its own. Published
    results are bits per character, so a table of perplexities quotes none.
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
    return frame.drop(columns=[] if any(frame[MIXED]) else MIXED)


def _measured_row(
    name: str, block: dict, results: list[dict], windows: list, metric: Metric, published: pd.DataFrame
) -> dict:  # fmt: skip
    protocol = Protocol.parse(block["window"] or windows[0]).name
    exact, harmonic = find(results, protocol, EXACT), find(results, protocol, FROM_SAMPLES)
    approximate = find(results, protocol, PUBLISHED, harmonic["draws"] if harmonic else None)
    shown = exact or harmonic or {}
    paper = published.loc[block["paper"]] if block["paper"] in published.index else {}
    return {
        "Approach": APPROACHES[block["kind"]],
        "Model": name,
        f"Paper {metric.name}": _published(paper),
        "Paper approx.": paper.get("approx_bpc", ""),
        "Protocol": protocol,
        "Tokens": f"{shown['tokens']:,}" if shown else "",
        metric.name: metric.show(exact["mean"]) if exact else "",
        "Interval": metric.interval(exact) if exact else "",
        "N": f"{approximate['draws']:,}" if approximate else "",
        f"Approx. {metric.name}": metric.show(approximate["mean"]) if approximate else "",
        "From samples": _from_samples(harmonic, metric) if harmonic else "",
        "Never hit": f"{harmonic['never_hit_share']:.2%}" if harmonic else "",
        MIXED: _mixed(results, protocol, metric),
        "Source": "measured",
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


def _quoted_row(row: pd.Series, metric: Metric) -> dict:
    return {
        "Approach": row["approach"],
        "Model": row["model"],
        f"Paper {metric.name}": _published(row),
        "Paper approx.": row["approx_bpc"],
        "Source": f"quoted: {row['citation']}",
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


def choose_n(found: list[dict], draws: int | str) -> pd.DataFrame:
    """What the paper's rule asks for, whether the run's N is enough by it, and what bits would take."""
    rows = []
    for result in found:
        plan = result["plan"]
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
                "Plan: half-width, bits": f"{plan['half_width']:.4f}"
                + ("" if plan["feasible"] else " (out of reach)"),
                "Plan: draws per token": f"{plan['draws_per_token']:.1f}",
                "Plan: cap": plan["cap"],
                "Plan: bias, bits": f"{plan['expected_bias_bits']:.4f}",
                "Plan: Monte-Carlo SE": f"{plan['monte_carlo_se']:.4f}",
                "Plan: text SE": f"{plan['text_se']:.4f}",
            }
        )
    return pd.DataFrame(rows)


def estimates(summaries: list[dict]) -> pd.DataFrame:
    """Every estimate of every model, each with all that it takes to judge it."""
    rows = [
        {"Model": summary["model"]} | _estimate(result)
        for summary in summaries
        for result in summary["results"]
    ]
    return pd.DataFrame(rows)


def _estimate(result: dict) -> dict:
    drawing = result["monte_carlo_se"]
    return {
        "Protocol": result["protocol"],
        "Estimand": result["estimand"],
        "Estimator": result["estimator"],
        "N or cap": f"{result['draws']:,}" if result["draws"] else "",
        "Value": f"{result['mean']:.4f}",
        "Unit": result["unit"],
        "Interval": f"[{result['low']:.4f}, {result['high']:.4f}]",
        "Text SE": f"{result['text_se']:.4f}",
        "Monte-Carlo SE": "" if drawing is None else f"{drawing:.4f}",
        "Draws per token": f"{result['draws_per_token']:.1f}" if result["draws_per_token"] else "",
        "Never hit": f"{result['never_hit_share']:.2%}",
        "Tokens": f"{result['tokens']:,}",
        "Block": f"{result['block_tokens']:,}" + ("" if result["plateau"] else " (no plateau)"),
    }
