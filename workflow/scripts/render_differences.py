"""Stage `render_differences`: paired differences between models, within each protocol."""

from ganlm import formats, tables
from ganlm.logs import stage_log
from ganlm.resultfiles import read_rows, read_summary
from ganlm.summary import differences


def main(snakemake) -> None:
    """Compare block by block: what is hard in the text is hard for both, and cancels."""
    with stage_log(snakemake.log[0], "render_differences"):
        models = [read_summary(path)["model"] for path in snakemake.input.summaries]
        rows = {model: read_rows(path) for model, path in zip(models, snakemake.input.blocks, strict=True)}
        baseline, level = snakemake.params.baseline, snakemake.params.level
        frame = tables.differences(differences(rows, baseline, level), baseline)
        frame = tables.with_missing(frame, snakemake.params.missing, "Estimators")
        caption = f"Paired differences to {baseline} in bits per token, with {level:.0%} intervals."
        formats.write(frame, snakemake.output, caption, "tab:differences")


if __name__ == "__main__":
    main(snakemake)
