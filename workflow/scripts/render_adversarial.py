"""Stage `render_adversarial`: what adversarial training does to a language model, epoch by epoch."""

import pandas as pd

from ganlm.comparison import arm_points
from ganlm.figures import style, training
from ganlm.logs import stage_log
from ganlm.resultfiles import read_rows, read_summary


def main(snakemake) -> None:
    """One curve per arm, from the pre-trained model on."""
    with stage_log(snakemake.log[0], "render_adversarial"):
        summaries = {summary["model"]: summary for summary in map(read_summary, snakemake.input.summaries)}
        rows = dict(zip(summaries, map(read_rows, snakemake.input.blocks), strict=True))
        points = pd.concat(
            arm_points(arm, epochs, summaries, rows, snakemake.params.protocol)
            for arm, epochs in snakemake.params.arms.items()
        )
        style.write(training.adversarial(points), points, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
