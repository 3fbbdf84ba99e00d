"""Stage `render_table1`: every model's bits per character beside what was published."""

import pandas as pd

from ganlm import tables
from ganlm.corpus import Corpus
from ganlm.files import read_json, write_text
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """Build one frame and write it in five formats."""
    with stage_log(snakemake.log[0], "render_table1"):
        corpus = Corpus.from_json(read_json(snakemake.input.corpus))
        metric = tables.Metric.of_unit(corpus.alphabet.unit)
        summaries = [read_json(path) for path in snakemake.input.summaries]
        literature = pd.read_csv(snakemake.input.literature, dtype=str, keep_default_na=False)
        frame = tables.table1(
            {summary["model"]: summary for summary in summaries},
            snakemake.params.models,
            snakemake.params.windows,
            metric,
            literature,
        )
        caption = (
            f"Table 1: {metric.name} on {corpus.tokens['test']:,} {corpus.alphabet.unit}s of test text. "
            "Rows marked as quoted were measured by others, on all of text8."
        )
        write_text(snakemake.output.csv, frame.to_csv(index=False))
        write_text(snakemake.output.markdown, tables.to_markdown(frame))
        write_text(snakemake.output.latex, tables.to_latex(frame, caption, "tab:table1"))
        write_text(snakemake.output.html, tables.to_html(frame, caption))
        write_text(snakemake.output.text, tables.to_text(frame))


if __name__ == "__main__":
    main(snakemake)
