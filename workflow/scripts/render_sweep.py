"""Stage `render_sweep`: bits against the length of the window, one curve per model."""

import pandas as pd

from ganlm.figures import style, training
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary
from ganlm.sweep import curve


def main(snakemake) -> None:
    """Curves from the test part; the window that validation chose is marked."""
    with stage_log(snakemake.log[0], "render_sweep"):
        chosen = {found["model"]: found["window"] for found in map(read_json, snakemake.input.chosen)}
        rows = [
            {"model": summary["model"], "chosen": point["window"] == chosen[summary["model"]]} | point
            for summary in map(read_summary, snakemake.input.summaries)
            for point in curve(summary["results"])
        ]
        data = pd.DataFrame(rows)
        style.write(training.sweep(data), data, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
