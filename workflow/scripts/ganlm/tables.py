"""From result files to tables: one frame, written in every format a reader may want."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ganlm.evaluation import Protocol

APPROACHES = {"uniform": "Baseline", "ngram": "n-gram"}
QUOTED = "quoted"
MEASURED = "measured"


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
        _measured_row(name, block, summaries[name], windows, metric, published)
        for name, block in models.items()
    ]
    reproduced = {block["paper"] for block in models.values()}
    quoted = [_quoted_row(row, metric) for _, row in literature.iterrows() if row["id"] not in reproduced]
    return pd.DataFrame(quoted + rows, columns=list(rows[0])).fillna("")


def _measured_row(
    name: str, block: dict, summary: dict, windows: list, metric: Metric, published: pd.DataFrame
) -> dict:
    protocol = Protocol.parse(block["window"] or windows[0]).name
    exact = next(r for r in summary["results"] if (r["protocol"], r["estimator"]) == (protocol, "exact"))
    paper = published.loc[block["paper"]] if block["paper"] in published.index else {}
    return {
        "Approach": APPROACHES[block["kind"]],
        "Model": name,
        "Protocol": protocol,
        metric.name: metric.show(exact["bits_per_token"]),
        f"{exact['level']:.0%} interval": f"[{metric.show(exact['low'])}, {metric.show(exact['high'])}]",
        f"Approx. {metric.name}": "",
        f"Paper {metric.name}": paper.get("bpc", ""),
        "Paper approx.": paper.get("approx_bpc", ""),
        "Source": MEASURED,
    }


def _quoted_row(row: pd.Series, metric: Metric) -> dict:
    bound = "≤ " if row["bound"] == "yes" else ""
    return {
        "Approach": row["approach"],
        "Model": row["model"],
        f"Paper {metric.name}": f"{bound}{row['bpc']}" if row["bpc"] else "",
        "Paper approx.": row["approx_bpc"],
        "Source": f"{QUOTED}: {row['citation']}",
    }


def to_markdown(frame: pd.DataFrame) -> str:
    """For a README."""
    return frame.to_markdown(index=False, disable_numparse=True) + "\n"


def to_text(frame: pd.DataFrame) -> str:
    """For a terminal."""
    return frame.to_markdown(index=False, disable_numparse=True, tablefmt="simple") + "\n"


def to_latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """For a paper, with booktabs rules."""
    styled = frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    return styled.to_latex(hrules=True, caption=caption, label=label, position="t")


def to_html(frame: pd.DataFrame, caption: str) -> str:
    """For a browser: one self-contained page."""
    style = (
        "body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;color:#222}"
        "table{border-collapse:collapse;border-top:2px solid;border-bottom:2px solid}"
        "caption{caption-side:bottom;text-align:left;padding-top:.6rem;color:#555}"
        "th,td{padding:.25rem .8rem;text-align:left;white-space:nowrap}"
        "thead th{border-bottom:1px solid}tr.quoted td{color:#777}"
    )
    head = "".join(f"<th>{_escape(column)}</th>" for column in frame.columns)
    body = "".join(
        f'<tr class="{row["Source"].split(":")[0]}">'
        + "".join(f"<td>{_escape(value)}</td>" for value in row)
        + "</tr>\n"
        for _, row in frame.iterrows()
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_escape(caption)}</title>'
        f"<style>{style}</style></head>\n<body><table><caption>{_escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></body></html>\n"
    )


def _escape(value: object) -> str:
    return str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
