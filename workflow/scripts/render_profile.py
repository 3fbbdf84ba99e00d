"""Stage `render_profile`: bits by position and by probability, and where the paper's gap comes from."""

import pandas as pd

from ganlm.figures import profile as figures
from ganlm.figures import style
from ganlm.logs import stage_log
from ganlm.profile import profile


def main(snakemake) -> None:
    """One row of panels per protocol."""
    with stage_log(snakemake.log[0], "render_profile"):
        models = zip(snakemake.params.models, snakemake.input, strict=True)
        points = profile({model: pd.read_csv(path) for model, path in models}, snakemake.params.level)
        points = points[points["protocol"].isin(snakemake.params.protocols)]
        style.write(figures.profile(points, snakemake.params.protocols), points, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
