"""One frame, written in every format a reader may want."""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd

from ganlm.files import write_text

LATEX_SYMBOLS = {"≤": r"$\leq$", "≥": r"$\geq$", "α": r"$\alpha$", "γ": r"$\gamma$"}


def to_markdown(frame: pd.DataFrame) -> str:
    """For a README."""
    return frame.replace(r"\|", r"\|", regex=True).to_markdown(index=False, disable_numparse=True) + "\n"


def to_text(frame: pd.DataFrame) -> str:
    """For a terminal."""
    return frame.to_markdown(index=False, disable_numparse=True, tablefmt="simple") + "\n"


def to_latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """For a paper, with booktabs rules; what is not ASCII becomes a formula."""
    styled = frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    escaped = re.sub(r"([%&#_$])", r"\\\1", caption)
    text = styled.to_latex(hrules=True, caption=escaped, label=label, position="t")
    return text.translate(str.maketrans(LATEX_SYMBOLS))


def to_html(frame: pd.DataFrame, caption: str) -> str:
    """For a browser: one self-contained page."""
    style = (
        "body{font:13px/1.4 system-ui,sans-serif;margin:1rem;color:#222}"
        "table{border-collapse:collapse;border-bottom:2px solid}"
        "caption{text-align:left;padding-bottom:.6rem;color:#555;max-width:min(60rem,calc(100vw - 2rem))}"
        "th,td{padding:.15rem .4rem;text-align:left;vertical-align:top}"
        "thead th{position:sticky;top:0;background:#fff;vertical-align:bottom;box-shadow:inset 0 -1px #222}"
        "tr.quoted td{color:#777}"
    )
    head = "".join(f"<th>{escape(column)}</th>" for column in frame.columns)
    body = "".join(
        f'<tr class="{str(row.get("Source", "")).split(":")[0]}">'
        + "".join(f"<td>{escape(str(value))}</td>" for value in row)
        + "</tr>\n"
        for _, row in frame.iterrows()
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(caption)}</title>'
        f"<style>{style}</style></head>\n<body><table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></body></html>\n"
    )


def write(frame: pd.DataFrame, paths: Iterable[str], caption: str, label: str) -> None:
    """The same cells in every format, which a path's suffix chooses."""
    formats = {
        ".csv": lambda: frame.to_csv(index=False),
        ".md": lambda: to_markdown(frame),
        ".tex": lambda: to_latex(frame, caption, label),
        ".html": lambda: to_html(frame, caption),
        ".txt": lambda: to_text(frame),
    }
    for path in paths:
        write_text(path, formats[Path(path).suffix]())
