"""Stage `render_estimators`: bias and cost of every estimator on one model."""

from ganlm import formats, tables
from ganlm.figures import draws, style
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary
from ganlm.summary import estimator_errors


def main(snakemake) -> None:
    """Compare what the estimators say with the exact bits of the same text."""
    with stage_log(snakemake.log[0], "render_estimators"):
        summary = read_summary(snakemake.input.summary)
        protocol = snakemake.params.protocol
        points = estimator_errors(summary, protocol)
        style.write(draws.estimators(points, summary["model"]), points, snakemake.output.figure)
        caption = (
            f"Estimators of the bits of {summary['model']}, {protocol}: bias in closed form, what this run's "
            "draws gave, both minus the exact bits of the same text; fewest draws first."
        )
        formats.write(tables.estimators(points), snakemake.output.table, caption, "tab:estimators")


if __name__ == "__main__":
    main(snakemake)
