"""One frame, written in every format a reader may want."""

import unicodedata
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd

from ganlm.files import write_text

LATEX_SYMBOLS = {
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
    "±": r"$\pm$",
}
LATEX_SPECIAL = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",  # these three are other signs in LaTeX's oldest font encoding, its default
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
LONG_CELL = 40
PAGE_ROWS = 40
FIT_WIDTH = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"


def to_markdown(frame: pd.DataFrame) -> str:
    """For a README."""
    return frame.replace(r"\|", r"\|", regex=True).to_markdown(index=False, disable_numparse=True) + "\n"


def to_text(frame: pd.DataFrame) -> str:
    """For a terminal."""
    return frame.to_markdown(index=False, disable_numparse=True, tablefmt="simple") + "\n"


def to_latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """For a paper, with booktabs rules: long cells are broken, wide tables shrunk, long ones cut in pages."""
    cells = frame.reset_index(drop=True).map(lambda cell: _latex(str(cell))).rename(columns=_latex)
    longest = [max(map(len, [name, *map(str, frame[name])])) for name in frame]
    kinds = "".join("l" if length <= LONG_CELL else r"p{0.4\linewidth}" for length in longest)
    pages = max(1, -(-len(cells) // PAGE_ROWS))
    tables = [_latex_page(cells[:PAGE_ROWS], kinds, _latex(caption), label)]
    for page in range(1, pages):
        rows = cells[page * PAGE_ROWS : (page + 1) * PAGE_ROWS]
        above = rf"Table~\ref{{{label}}}, page {page + 1} of {pages}."
        tables.append(_latex_page(rows, kinds, above, f"{label}-{page + 1}"))
    return "% \\usepackage{booktabs,graphicx}\n" + "\n".join(tables)


def _latex_page(cells: pd.DataFrame, kinds: str, caption: str, label: str) -> str:
    """A table of its own, as wide as it likes, but at most as wide as the page."""
    text = cells.style.hide(axis="index").to_latex(
        hrules=True, caption=caption, label=label, position="t", column_format=kinds
    )
    text = text.replace(r"\begin{tabular}", f"{FIT_WIDTH}{{%\n\\begin{{tabular}}")
    return text.replace(r"\end{tabular}", r"\end{tabular}}")


def _latex(text: str) -> str:
    """Nothing in it means anything to LaTeX; a character that its fonts lack is named by its number."""
    return "".join(map(_latex_character, text))


def _latex_character(character: str) -> str:
    known = LATEX_SPECIAL | LATEX_SYMBOLS
    if character in known or character.isascii():
        return known.get(character, character)
    accented = character.isalpha() and len(unicodedata.normalize("NFD", character)) == 2 and character <= "ÿ"
    return character if accented else rf"\texttt{{U+{ord(character):04X}}}"


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
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(caption)}</title>'
        f"<style>{style}</style></head>\n<body>{html_table(frame, caption)}</body></html>\n"
    )


def html_table(frame: pd.DataFrame, caption: str = "") -> str:
    """The table alone; the first word of a row's source is its class."""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(column)}</th>" for column in frame.columns)
    body = "".join(
        f'<tr class="{str(row.get("Source", "")).split(":")[0]}">'
        + "".join(f"<td>{escape(str(value))}</td>" for value in row)
        + "</tr>\n"
        for _, row in frame.iterrows()
    )
    return f"<table>{above}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def write(frame: pd.DataFrame, paths: Iterable[str], caption: str, label: str, text: str = "") -> None:
    """The same cells in every format, which a path's suffix chooses; a terminal may see another `text`."""
    formats = {
        ".csv": lambda: frame.to_csv(index=False),
        ".md": lambda: to_markdown(frame),
        ".tex": lambda: to_latex(frame, caption, label),
        ".html": lambda: to_html(frame, caption),
        ".txt": lambda: text or to_text(frame),
    }
    for path in paths:
        write_text(path, formats[Path(path).suffix]())
