"""LaTeX tables: read by rules that LaTeX itself would insist on, or compiled where there is one."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

ENGINES = {
    "pdflatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "xelatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "lualatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "tectonic": [],
}
COMMANDS = {
    *("begin", "end", "caption", "label", "ref", "toprule", "midrule", "bottomrule"),
    *("resizebox", "linewidth"),
    *("textasciitilde", "textasciicircum", "textbackslash", "textless", "textgreater", "textbar", "texttt"),
}
FITTING = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
FORMULAS = {"leq", "geq", "approx", "alpha", "gamma", "pm"}
SHOWN = {
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textbackslash{}": "\\",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"$\leq$": "≤",
    r"$\geq$": "≥",
    r"$\approx$": "≈",
    r"$\alpha$": "α",
    r"$\gamma$": "γ",
    r"$\pm$": "±",
} | {rf"\{character}": character for character in "&%$#_{}"}


def engine() -> str | None:
    """The first LaTeX that is installed."""
    return next(filter(shutil.which, ENGINES), None)


def compile_all(tables: Sequence[str], folder: Path) -> None:
    """One document with all tables, each within its page; LaTeX's own words where it fails."""
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    path = folder / "all.tex"
    path.write_text("\n\\clearpage\n".join([head, *tables, r"\end{document}"]), encoding="utf-8")
    command = [engine(), *ENGINES[engine()], path.name]
    result = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout.decode(errors="replace")[-2000:]
    assert path.with_suffix(".pdf").stat().st_size > 1000
    log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    assert re.findall(r"Overfull .*|Float too large .*", log) == []


def cells(text: str) -> list[list[str]]:
    """What the cells of a table show, header first, if LaTeX would take it; its pages are put together."""
    text = re.sub(r"(?<!\\)%.*\n", "", text)
    check_commands(text)
    check_groups(text)
    pages = [page_cells(page) for page in re.split(r"(?=\\begin\{table\})", text) if page.strip()]
    assert len({tuple(page[0]) for page in pages}) == 1, "pages with different headers"
    return [pages[0][0], *(row for page in pages for row in page[1:])]


def page_cells(text: str) -> list[list[str]]:
    kinds, body = re.fullmatch(
        r"(?s).*\\begin\{tabular\}\{((?:[lrc]|p\{[\d.]+\\linewidth\})+)\}\n(.*)\\end\{tabular\}.*", text
    ).groups()
    rules = re.fullmatch(r"(?s)\\toprule\n(.*?)\\midrule\n(.*)\\bottomrule\n", body)
    assert rules, "the rules are not \\toprule, \\midrule, \\bottomrule around header and body"
    assert len(re.findall(r"\\\w+rule\b", body)) == 3
    rows = [row for part in rules.groups() for row in part.split("\\\\\n")[:-1]]
    assert all(part.endswith("\\\\\n") for part in rules.groups() if part)
    assert not any(row.startswith(("[", "*")) for row in rows), "taken as an argument of the line end before"
    found = [re.split(r"(?<!\\)&", row) for row in rows]
    columns = len(re.findall(r"[lrc]|p\{", kinds.replace(r"\linewidth", "")))
    assert {len(row) for row in found} == {columns}, "rows of different lengths"
    return [[shown(cell.strip()) for cell in row] for row in found]


def check_commands(text: str) -> None:
    """Every backslash begins a command that the format knows, a line end, or an escaped character."""
    formulas = "|".join(FORMULAS)
    outside = re.sub(rf"(?<!\\)\$\\(?:{formulas})\$", "", text.replace(FITTING, ""))
    for command in re.findall(r"\\([A-Za-z]+|.)", outside, re.DOTALL):
        assert command in COMMANDS | set("&%$#_{}\\"), f"unknown command \\{command}"
    unescaped = re.sub(r"\\.", "", outside.replace(r"Table~\ref", ""))
    assert not re.search(r"[#^_~$<>|]", unescaped), "a special character is not escaped"


def check_groups(text: str) -> None:
    """Braces and environments close in the order in which they open."""
    opened: list[str] = []
    for escaped, command, name, brace in re.findall(r"(\\[{}\\])|\\(begin|end)\{(\w+)\}|([{}])", text):
        if escaped:
            continue
        if command == "begin" or brace == "{":
            opened.append(name or "}")
        else:
            assert opened.pop() == (name or "}")
    assert opened == []


def shown(cell: str) -> str:
    """A cell without the commands that stand for characters."""
    return re.sub("|".join(map(re.escape, SHOWN)), lambda match: SHOWN[match[0]], cell)
