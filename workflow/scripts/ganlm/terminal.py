"""Table 1 for a terminal of 120 columns: what the paper's table shows, ours beside theirs."""

from collections.abc import Iterator
from textwrap import fill

import pandas as pd

from ganlm.tables import FIRST_VERSION, MEASURED, NOTE, QUOTED, Metric

WIDTH = 120
NAME_WIDTH = 27
FROM_SAMPLES = "From samples"
PAPER, VERSION_1 = "Paper", "Version 1"


def table1(frame: pd.DataFrame, metric: Metric) -> str:
    """The rows of Table 1, intervals below their numbers; below the table, what the rows have to say."""
    lines = []
    for approach, rows in frame.groupby("Approach", sort=False):
        lines += [{"Model": f"{approach or 'Missing'}:"}, *(_line(row, metric) for _, row in rows.iterrows())]
    shown = pd.DataFrame(lines).fillna("")
    shown = shown.drop(columns=[name for name in (PAPER, VERSION_1) if not any(shown[name])])
    text = shown.to_markdown(index=False, disable_numparse=True, tablefmt="simple")
    return "\n".join([text, "", *_notes(frame)]) + "\n"


def _line(row: pd.Series, metric: Metric) -> dict[str, str]:
    kind = row["Source"].partition(":")[0]
    return {
        "Model": fill(row["Model"], NAME_WIDTH),
        "Protocol": row["Protocol"] or (kind if kind == QUOTED else "not run"),
        f"Direct {metric.name}": f"{row[f'Direct {metric.name}']}\n{row['Interval']}".strip(),
        f"Approx. {metric.name}": f"{row[f'Approx. {metric.name}']}\n{row['Approx. interval']}".strip(),
        FROM_SAMPLES: row[FROM_SAMPLES].replace(" [", "\n["),
        PAPER: _both(row[f"Paper {metric.name}"], row["Paper approx."]),
        VERSION_1: row.get(FIRST_VERSION, ""),
    }


def _both(direct: str, approximate: str) -> str:
    """The paper's two columns in one, as far as it has them."""
    return f"{direct or '-'} / {approximate}" if approximate else direct


def _notes(frame: pd.DataFrame) -> Iterator[str]:
    draws = " or ".join(dict.fromkeys(filter(None, frame["N"])))
    yield fill(
        "Direct: from known probabilities. Approx.: as the paper's code computes it, from "
        f"N = {draws or 0} draws per token. From samples: the harmonic estimate from the same draws."
        + (" Paper and its version 1: direct / approx." if FIRST_VERSION in frame else ""),
        WIDTH,
    )
    for _, row in frame.iterrows():
        reason = "" if row["Source"].partition(":")[0] in (MEASURED, QUOTED) else row["Source"]
        if note := "; ".join(filter(None, (reason, row.get(NOTE, "")))):
            yield fill(f"{row['Model']}: {note}", WIDTH)
