"""Stage `render_pairs`: every model minus every better one, under one protocol."""

from pathlib import Path

from ganlm import formats, tables
from ganlm.comparison import pairs
from ganlm.figures import models, style
from ganlm.logs import stage_log
from ganlm.resultfiles import read_rows


def main(snakemake) -> None:
    """The same differences as a figure and as a table."""
    protocol, level = snakemake.wildcards.protocol, snakemake.params.level
    with stage_log(snakemake.log[0], f"render_pairs {protocol}"):
        rows = {Path(path).stem: read_rows(path) for path in snakemake.input.blocks}
        found = pairs(rows, protocol, level)
        style.write(
            models.pairs(found, protocol), found, [snakemake.output.figure, *snakemake.output.formats]
        )
        frame = tables.with_missing(tables.pairs(found), snakemake.params.missing, "Estimators")
        caption = (
            f"Paired differences in bits per token under {protocol}, every model minus every one with fewer "
            f"bits, with {level:.0%} intervals. Of all pairs: whether 0 is still excluded when the "
            f"{1 - level:.0%} chance of error is shared between all {len(found)} pairs. ≥, ≤, ~: some tokens "
            "of the first, the second or both models were never drawn, so that its bits are too few."
        )
        formats.write(
            frame, [*snakemake.output.tables, snakemake.output.page], caption, f"tab:pairs-{protocol}"
        )


if __name__ == "__main__":
    main(snakemake)
