"""Stage `render_cost`: parameters, training text, time and draws of every model."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ganlm import formats
from ganlm.cost import Records, cost
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary


def main(snakemake) -> None:
    """Put together what training and evaluation left behind."""
    files = snakemake.input
    with stage_log(snakemake.log[0], "render_cost"):
        records = Records(
            sidecars={Path(path).parent.name: read_json(path) for path in files.sidecars},
            histories={Path(path).parent.name: pd.read_csv(path) for path in files.histories},
            rates={Path(path).stem: pd.read_csv(path) for path in files.rates},
            times=_times(files.times),
            summaries={Path(path).stem: read_summary(path) for path in files.summaries},
        )
        caption = (
            "What every model cost. Parameters: of the generator alone; of an n-gram model its distinct "
            "n-grams. Training tokens: what the updates read, real or generated, with repetitions; what a "
            "SeqGAN starts from comes on top. Training time: ≈ where not every step was timed. Evaluation "
            "time: all protocols and estimators, of the jobs that finished it. Draws per token: of the "
            "estimate in brackets, which tables show first."
        )
        for name, facts in records.sidecars.items():
            if epoch := facts.get("diverged_in"):
                caption += f" Training of {name} diverged in epoch {epoch} and ended there."
        formats.write(cost(snakemake.params.kinds, records), snakemake.output, caption, "tab:cost")


def _times(paths: Iterable[str]) -> dict[str, pd.DataFrame]:
    """Benchmarks of the jobs `<model>.<shard>`, by model."""
    tables = [(Path(path).stem.rsplit(".", 1)[0], pd.read_csv(path, sep="\t")) for path in paths]
    return {name: pd.concat(table for model, table in tables if model == name) for name, _ in tables}


if __name__ == "__main__":
    main(snakemake)
