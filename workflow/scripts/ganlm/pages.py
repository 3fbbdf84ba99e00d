"""The pages a reader opens first: what a run answers, and how it was done.

Templates hold the words, this module the numbers. A page is one file that loads nothing.
"""

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from jinja2 import DictLoader, Environment, StrictUndefined

from ganlm import tables
from ganlm.findings import together

MIXED = "differs from model to model"


def render(templates: Iterable[str], **values: object) -> str:
    """The last of the template files, which may extend those before it."""
    sources = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in templates}
    environment = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(list(sources)[-1]).render(values)


def data_uri(svg: bytes) -> str:
    """A picture as part of a page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def leaders(table1: pd.DataFrame, first: str) -> dict[str, list[dict[str, str]]]:
    """Protocol -> the best measured model of each approach under it, best first.

    An estimate from samples stands in where exact bits are not known. Each model is in the table once, under
    its own protocol; that which figures show comes `first`.
    """
    found = {}
    for protocol in dict.fromkeys([first, *filter(None, table1["Protocol"])]):
        best: dict[str, dict[str, str]] = {}
        for row in sorted(_measured(table1, protocol), key=_bits):
            best.setdefault(row["Approach"], row)
        if best:
            found[protocol] = list(best.values())
    return found


def gaps(table1: pd.DataFrame, protocol: str) -> dict[str, tuple[float, float]]:
    """Smallest and largest distance to exact bits, of the published estimate and of the harmonic one."""
    metric = tables.metric_of(table1)
    measured = _measured(table1, protocol)
    direct = f"Direct {metric}"
    rows = [row for row in measured if row["N"] and row[direct] and math.isfinite(_bits(row))]
    shown = {"published": f"Approx. {metric}", "harmonic": "From samples"}
    differences = {
        name: [_number(row[column]) - _number(row[direct]) for row in rows] for name, column in shown.items()
    }
    return {name: (min(found), max(found)) for name, found in differences.items() if found}


def ours_first(table1: pd.DataFrame) -> pd.DataFrame:
    """Rows of this run, measured or missing, before those that were quoted."""
    quoted = table1["Source"].str.startswith("quoted")
    return pd.concat([table1[~quoted], table1[quoted]])


def claims(findings: pd.DataFrame) -> list[dict[str, str]]:
    """Claim by claim: what the paper says, and the verdicts of this run together."""
    return [
        {"claim": claim, "paper": rows["The paper"].iloc[0], "verdict": together(rows["Verdict"])}
        for claim, rows in findings.groupby("Claim", sort=False)
    ]


def tally(judged: list[dict[str, str]]) -> dict[str, int]:
    """Verdict -> number of claims; a claim whose findings do not agree counts as MIXED."""
    return dict(Counter(MIXED if "," in claim["verdict"] else claim["verdict"] for claim in judged))


def combined(digests: Mapping[str, str]) -> str:
    """One digest of all modules that a stage can reach."""
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]


def _measured(table1: pd.DataFrame, protocol: str) -> list[dict[str, str]]:
    """Rows with a number, each with what it is, `bits` and `interval`, wherever it comes from."""
    direct = f"Direct {tables.metric_of(table1)}"
    rows = table1[(table1["Source"] == tables.MEASURED) & (table1["Protocol"] == protocol)]
    found = []
    for row in rows.to_dict("records"):
        if row[direct]:
            found.append(row | {"bits": row[direct], "interval": row["Interval"]})
        elif row["From samples"]:
            bits, bracket, interval = row["From samples"].partition("[")
            found.append(row | {"bits": bits.strip(), "interval": f"{bracket}{interval}"})
    return found


def _bits(row: dict[str, str]) -> float:
    return _number(row["bits"])


def _number(cell: str) -> float:
    """Of `1.95`, `1.95 [1.90, 2.00]` or `≥ 1.95 [1.90, 2.00]`; what is unknown is not finite."""
    number = cell.removeprefix("≥ ").split()[0]
    return math.inf if number == tables.UNKNOWN else float(number)
