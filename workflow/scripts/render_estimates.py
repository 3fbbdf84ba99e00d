"""Stage `render_estimates`: every estimate of the run in one table, with all that it takes to judge it."""

from ganlm import formats, tables
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary


def main(snakemake) -> None:
    """One row per model, protocol, estimand and estimator."""
    with stage_log(snakemake.log[0], "render_estimates"):
        frame = tables.estimates([read_summary(path) for path in snakemake.input.summaries])
        frame = tables.with_missing(frame, snakemake.params.missing, "Estimator")
        caption = "Every estimate per token; text and Monte-Carlo errors are stated apart."
        formats.write(frame, snakemake.output, caption, "tab:estimates")


if __name__ == "__main__":
    main(snakemake)
