"""Stage `render_table1`: every model's bits per character beside what was published."""

import pandas as pd

from ganlm import formats, tables, terminal
from ganlm.corpus import Corpus
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary
from ganlm.seeds import pooled


def main(snakemake) -> None:
    """Build one frame and write it in four formats, and a short one for the terminal."""
    with stage_log(snakemake.log[0], "render_table1"):
        corpus = Corpus.load(snakemake.input.corpus)
        metric = tables.Metric.of_unit(corpus.alphabet.unit)
        summaries = {summary["model"]: summary for summary in map(read_summary, snakemake.input.summaries)}
        rows = {
            row: pooled([summaries[name] for name in names], row)
            for row, names in snakemake.params.seeds.items()
        }
        frame = tables.table1(
            rows,
            snakemake.params.models,
            snakemake.params.windows,
            metric,
            pd.read_csv(snakemake.input.literature, dtype=str, keep_default_na=False),
        )
        level = next(iter(summaries.values()))["results"][0]["level"]
        caption = (
            f"{metric.name} on held-out text with {level:.0%} intervals; Tokens says on how much of it. "
            f"Direct {metric.name}: from known probabilities. Approx. {metric.name}: what the paper's code "
            "computed from N draws per token, the mean softmax of a generator with noise, -log2 of the share "
            "of hits of any other. From samples: the harmonic estimate from the same draws; ≥ where a token "
            "was never drawn, since its bias is then downward. Quoted rows were measured by others, on all "
            "of text8. First version: direct / approximate in the first of the paper's two versions. "
            "Seeds: a model that was trained so many times is shown by mean and standard deviation, its "
            "interval holds the errors of text, draws and training."
        )
        frame = tables.with_missing(frame, snakemake.params.missing, "Source")
        formats.write(frame, snakemake.output, caption, "tab:table1", terminal.table1(frame, metric))


if __name__ == "__main__":
    main(snakemake)
