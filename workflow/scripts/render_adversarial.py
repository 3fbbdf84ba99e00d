"""Stage `render_adversarial`: what adversarial training does to a language model, epoch by epoch."""

import pandas as pd

from ganlm import figures
from ganlm.files import read_json
from ganlm.logs import stage_log
from ganlm.summary import find


def main(snakemake) -> None:
    """One curve per arm, from the pre-trained model on."""
    with stage_log(snakemake.log[0], "render_adversarial"):
        summaries = {summary["model"]: summary for summary in map(read_json, snakemake.input.summaries)}
        rows = []
        for arm, instances in snakemake.params.arms.items():
            for epoch, instance in instances.items():
                exact = find(summaries[instance]["results"], snakemake.params.protocol, "exact")
                interval = {key: exact[key] for key in ("mean", "low", "high")}
                rows.append({"arm": arm, "epoch": int(epoch)} | interval)
        data = pd.DataFrame(rows)
        figures.write(figures.adversarial(data), data, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
