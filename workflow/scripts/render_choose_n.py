"""Stage `render_choose_n`: Figure 2, and what the rule behind it asks for."""

import pandas as pd

from ganlm import formats, tables
from ganlm.figures import draws, style
from ganlm.files import read_json
from ganlm.logs import stage_log

# From the arrays in GuyTevet/rnn-gan-eval: N times SeqGAN's curve (1.611 for the Recurrent GAN's), and where
# the two stay below 0.001.
PUBLISHED_LAW, PUBLISHED_CHOICES = 1.585, (1580, 1630)


def main(snakemake) -> None:
    """Put the models' curves into one figure and their consequences into one table."""
    with stage_log(snakemake.log[0], "render_choose_n"):
        found = [read_json(path) for path in snakemake.input.chosen]
        curves = pd.concat(
            pd.read_csv(path).assign(model=result["model"])
            for path, result in zip(snakemake.input.curves, found, strict=True)
        )
        chosen = {result["model"]: result["draws"] for result in found}
        figure = draws.convergence(curves, chosen, found[0]["threshold"], PUBLISHED_LAW, PUBLISHED_CHOICES)
        style.write(figure, curves, snakemake.output[:4])
        caption = f"How many draws are enough; this run used {snakemake.params.draws}."
        frame = tables.choose_n(found, snakemake.params.draws)
        frame = tables.with_missing(frame, snakemake.params.missing, "Chosen N")
        formats.write(frame, snakemake.output[4:], caption, "tab:choose-n")


if __name__ == "__main__":
    main(snakemake)
