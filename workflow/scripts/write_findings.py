"""Stage `write_findings`: which claims of the paper hold in this run, from its result files alone."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from ganlm import findings, formats
from ganlm.claims import Judge, Questions, Results, Thresholds
from ganlm.files import read_json, write_text
from ganlm.logs import stage_log
from ganlm.resultfiles import read_rows


def main(snakemake) -> None:
    """The same verdicts as text, as a table, and as a page of the report."""
    files, params = snakemake.input, snakemake.params
    with stage_log(snakemake.log[0], "write_findings"):
        questions = Questions(**params.questions)
        results = Results(
            rows=_by_model(files.blocks, read_rows),
            draws=_by_model(files.draws, read_json),
            sweep=_by_model(files.sweeps, read_rows),
            windows=_by_model(files.windows, read_json),
            scores=_by_model(files.scores, read_json),
            published=_published(files.literature),
        )
        claims = Judge(results, questions, Thresholds.parse(params.thresholds)).claims()
        caption = (
            f"Claims of Tevet et al. 2019 in the paper's order, with {questions.level:.0%} intervals. A "
            "claim holds if the whole interval is where the claim says, does not hold if none of it is, and "
            "otherwise this run cannot tell. Thresholds are in the config, under `findings`."
        )
        write_text(snakemake.output.text, findings.to_markdown(claims, caption))
        frame = findings.to_frame(claims)
        formats.write(frame, [snakemake.output.table], caption, "tab:findings")
        formats.write(findings.claims_once(frame), [snakemake.output.page], caption, "tab:findings")


def _by_model(paths: Iterable[str], read: Callable) -> dict:
    """Result files are named after their models."""
    return {Path(path).stem: read(path) for path in paths}


def _published(path: str) -> dict[str, float]:
    """Exact bits where there are any, else approximate ones."""
    rows = pd.read_csv(path).set_index("id")
    return rows["bpc"].fillna(rows["approx_bpc"]).to_dict()


if __name__ == "__main__":
    main(snakemake)
