"""Stage `render_table2`: what every model writes, and how much of it occurs in held-out text."""

from ganlm import formats, tables
from ganlm.files import read_json
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """The first samples of every model, as they were drawn."""
    with stage_log(snakemake.log[0], "render_table2"):
        samples = list(map(read_json, snakemake.input.samples))
        scores = list(map(read_json, snakemake.input.scores))
        frame = tables.table2(samples, scores, snakemake.params.shown)
        frame = tables.with_missing(frame, snakemake.params.missing, "Sample")
        caption = (
            f"The first {snakemake.params.shown} of {samples[0]['count']} samples of each model, seed "
            f"{samples[0]['seed']}, none picked by hand. %-IN-TEST-n: share of the distinct word n-grams of "
            "all its samples that occur in the test part, with standard error."
        )
        formats.write(frame, snakemake.output, caption, "tab:table2")


if __name__ == "__main__":
    main(snakemake)
