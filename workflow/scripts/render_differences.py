"""Stage `render_differences`: paired differences between models, within each protocol."""

import pandas as pd

from ganlm import formats, tables
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.summary import differences


def main(snakemake) -> None:
    """Compare block by block: what is hard in the text is hard for both, and cancels."""
    with stage_log(snakemake.log[0], "render_differences"):
        models = [read_json(path)["model"] for path in snakemake.input.summaries]
        rows = {model: pd.read_csv(path) for model, path in zip(models, snakemake.input.blocks, strict=True)}
        baseline, level = snakemake.params.baseline, snakemake.params.level
        frame = tables.differences(differences(rows, baseline, level), baseline)
        caption = f"Paired differences to {baseline} in bits per token, with {level:.0%} intervals."
        formats.write(frame, snakemake.output, caption, "tab:differences")


if __name__ == "__main__":
    main(snakemake)
