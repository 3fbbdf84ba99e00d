"""Stage `render_gap`: how far the paper's estimate lies above the truth, as a function of N."""

import pandas as pd

from ganlm import figures
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.summary import gaps


def main(snakemake) -> None:
    """Expected and drawn gaps of every explicit model that has them, beside the published ones."""
    with stage_log(snakemake.log[0], "render_gap"):
        summaries = [read_json(path) for path in snakemake.input.summaries]
        points = gaps(summaries, snakemake.params.protocol)
        literature = pd.read_csv(snakemake.input.literature).dropna(subset=["bpc", "approx_bpc"])
        gap = literature["approx_bpc"] - literature["bpc"]
        published = pd.DataFrame(
            {"model": literature["id"], "draws": snakemake.params.published_draws, "gap": gap}
        )
        data = pd.concat([points, published])
        figures.write(figures.gap(points, published), data, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
