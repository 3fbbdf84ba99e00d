"""Stage `render_standings`: all models on one axis, one panel per protocol, beside published results."""

import pandas as pd

from ganlm.comparison import ranked, standings
from ganlm.figures import models, style
from ganlm.literature import comparable
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary


def main(snakemake) -> None:
    """The most exact estimate of every model, and what others measured under the same protocol."""
    with stage_log(snakemake.log[0], "render_standings"):
        measured = standings(
            {summary["model"]: summary for summary in map(read_summary, snakemake.input.summaries)}
        )
        points = [measured]
        if snakemake.params.quoted:
            points.append(comparable(pd.read_csv(snakemake.input.literature), measured["protocol"]))
        points = ranked(pd.concat(points), snakemake.params.protocols)
        style.write(models.standings(points), points, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
