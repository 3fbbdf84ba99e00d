"""Stage `write_findings`: which claims of the paper hold in this run, from its result files alone."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from ganlm import findings, formats
from ganlm.claims import Judge
from ganlm.evidence import Questions, Results, Thresholds
from ganlm.files import read_json, write_text
from ganlm.logs import stage_log
from ganlm.paper import claims
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
            validation=_by_model(files.validation, read_rows),
            windows=_by_model(files.windows, read_json),
            scores=_by_model(files.scores, read_json),
            published=_published(files.literature),
        )
        judged = claims(Judge(results, questions, Thresholds.parse(params.thresholds)))
        caption = " ".join((_verdicts(questions.level), _scale(files.corpus, **params.scale)))
        write_text(snakemake.output.text, findings.to_markdown(judged, caption))
        frame = findings.to_frame(judged)
        formats.write(frame, [snakemake.output.table], caption, "tab:findings")
        formats.write(findings.claims_once(frame), [snakemake.output.page], caption, "tab:findings")


def _verdicts(level: float) -> str:
    return (
        f"Claims of Tevet et al. 2019 in the paper's order, with {level:.0%} intervals. A claim holds if the "
        "whole interval is where the claim says, does not hold if none of it is, and otherwise this run "
        "cannot tell. Controls train in a way of which the paper says nothing; they and notes do not enter a "
        "claim's verdict. Thresholds are in the config, under `findings`."
    )


def _scale(
    descriptions: list[str], source: str, unit: str, explicit: int | None, drawn: int | None, seeds: int
) -> str:
    """What the numbers rest on; a half-finished run may have no description of its corpus."""
    source = {"bundled": "the bundled beginning of text8"}.get(source, source)
    parts = [read_json(path, "tokens")["tokens"] for path in descriptions]
    sizes = [f", {sum(part.values()):,} {unit}s, of which {part['test']:,} are for testing" for part in parts]
    known, others = (f"{count:,}" if count else "all" for count in (explicit, drawn))
    one = "There is one seed." if seeds == 1 else f"Each of the {seeds} seeds has findings of its own."
    return (
        f"Corpus: {source}{''.join(sizes)}. Models with known probabilities are measured on {known} of "
        f"these, others on {others}. Intervals are of the text and of the draws for one training, not over "
        f"seeds, which may differ by more. {one}"
    )


def _by_model(paths: Iterable[str], read: Callable) -> dict:
    """Result files are named after their models."""
    return {Path(path).stem: read(path) for path in paths}


def _published(path: str) -> dict[str, float]:
    """Exact bits where there are any, else approximate ones."""
    rows = pd.read_csv(path).set_index("id")
    return rows["bpc"].fillna(rows["approx_bpc"]).to_dict()


if __name__ == "__main__":
    main(snakemake)
