"""Every table of a run as LaTeX: it says what the CSV says, and compiles where a LaTeX is installed."""

from pathlib import Path

import latex
import pandas as pd
import pytest
from clone import Clone


@pytest.fixture(scope="module")
def tables(finished: Clone) -> dict[str, Path]:
    found = [*(finished.results() / "tables").glob("*.tex"), finished.results() / "benchmarks/cost.tex"]
    return {path.stem: path for path in sorted(found)}


def test_every_table_has_every_format(finished: Clone, tables: dict[str, Path]):
    assert {"table1", "table2", "differences", "estimates", "estimators", "choose_n"} <= set(tables)
    folder = finished.results() / "tables"
    for suffix in ("csv", "md", "html", "txt"):
        assert {path.stem for path in folder.glob(f"*.{suffix}")} == set(tables) - {"cost"}


def test_the_latex_of_every_table_holds_the_cells_of_its_csv(tables: dict[str, Path]):
    for path in tables.values():
        frame = pd.read_csv(path.with_suffix(".csv"), dtype=str, keep_default_na=False)
        cells = [list(frame.columns), *frame.to_numpy().tolist()]
        stripped = [[cell.strip() for cell in row] for row in cells]
        assert latex.cells(path.read_text(encoding="utf-8")) == stripped, path.name


@pytest.mark.skipif(not latex.engine(), reason="no LaTeX is installed; the tables are parsed")
def test_the_latex_of_every_table_compiles(tables: dict[str, Path], tmp_path: Path):
    latex.compile_all([path.read_text(encoding="utf-8") for path in tables.values()], tmp_path)
