"""Stage `render_choose_n`: Figure 2, and what the rule behind it asks for."""

import pandas as pd

from ganlm import figures, formats, tables
from ganlm.files import read_json
from ganlm.logs import stage_log

PUBLISHED_CONSTANT = 0.1585  # of SeqGAN's curve, from the arrays in GuyTevet/rnn-gan-eval


def main(snakemake) -> None:
    """Put the models' curves into one figure and their consequences into one table."""
    with stage_log(snakemake.log[0], "render_choose_n"):
        found = [read_json(path) for path in snakemake.input.chosen]
        curves = pd.concat(
            pd.read_csv(path).assign(model=result["model"])
            for path, result in zip(snakemake.input.curves, found, strict=True)
        )
        law = found[0]["alpha"] * PUBLISHED_CONSTANT
        figures.write(figures.convergence(curves, found[0]["threshold"], law), curves, snakemake.output[:4])
        caption = f"How many draws are enough; this run used {snakemake.params.draws}."
        formats.write(
            tables.choose_n(found, snakemake.params.draws), snakemake.output[4:], caption, "tab:choose-n"
        )


if __name__ == "__main__":
    main(snakemake)
