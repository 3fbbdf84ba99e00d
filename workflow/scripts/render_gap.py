"""Stage `render_gap`: how far the paper's estimate lies above the truth, as a function of N."""

import pandas as pd

from ganlm.figures import draws, style
from ganlm.literature import published_gaps
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary
from ganlm.summary import gaps


def main(snakemake) -> None:
    """Expected and drawn gaps of every explicit model that has them, beside the published ones."""
    with stage_log(snakemake.log[0], "render_gap"):
        summaries = [read_summary(path) for path in snakemake.input.summaries]
        points = gaps(summaries, snakemake.params.protocol)
        published = published_gaps(pd.read_csv(snakemake.input.literature), snakemake.params.published_draws)
        style.write(draws.gap(points, published), pd.concat([points, published]), snakemake.output)


if __name__ == "__main__":
    main(snakemake)
