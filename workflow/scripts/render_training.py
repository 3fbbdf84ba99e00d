"""Stage `render_training`: how training went, epoch by epoch, and how fast it was."""

import pandas as pd

from ganlm.curves import curves
from ganlm.figures import style, training
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """What the networks learned goes to the results, their speed to the other timings."""
    models, inputs, outputs = snakemake.params.models, snakemake.input, snakemake.output
    with stage_log(snakemake.log[0], f"render_training {snakemake.wildcards.kind}"):
        learned = [outputs.figure, *outputs.formats]
        for tables, written in ((inputs.histories, learned), (inputs.rates, outputs.speed)):
            read = [pd.read_csv(table) for table in tables]
            data = curves(dict(zip(models, read, strict=True)))
            style.write(training.training(data), data, written)


if __name__ == "__main__":
    main(snakemake)
