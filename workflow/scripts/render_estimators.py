"""Stage `render_estimators`: bias and cost of every estimator on one model."""

from ganlm import figures
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.summary import estimator_errors


def main(snakemake) -> None:
    """Compare what the estimators say with the exact bits of the same text."""
    with stage_log(snakemake.log[0], "render_estimators"):
        summary = read_json(snakemake.input.summary)
        points = estimator_errors(summary, snakemake.params.protocol)
        figures.write(figures.estimators(points, summary["model"]), points, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
