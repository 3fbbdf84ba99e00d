"""Stage `render_table1`: every model's bits per character beside what was published."""

import pandas as pd

from ganlm import formats, tables
from ganlm.corpus import Corpus
from ganlm.files import read_json
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """Build one frame and write it in five formats."""
    with stage_log(snakemake.log[0], "render_table1"):
        corpus = Corpus.from_json(read_json(snakemake.input.corpus))
        metric = tables.Metric.of_unit(corpus.alphabet.unit)
        summaries = [read_json(path) for path in snakemake.input.summaries]
        frame = tables.table1(
            {summary["model"]: summary for summary in summaries},
            snakemake.params.models,
            snakemake.params.windows,
            metric,
            pd.read_csv(snakemake.input.literature, dtype=str, keep_default_na=False),
        )
        level = summaries[0]["results"][0]["level"]
        caption = (
            f"{metric.name} on held-out text with {level:.0%} intervals; Tokens says on how much of it. "
            f"Approx. {metric.name}: the paper's estimate from N draws per token. From samples: the harmonic "
            "estimate from the same draws; ≥ where a token was never drawn, since its bias is then downward. "
            "Quoted rows were measured by others, on all of text8."
        )
        formats.write(frame, snakemake.output, caption, "tab:table1")


if __name__ == "__main__":
    main(snakemake)
