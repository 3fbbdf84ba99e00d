"""Stage `tune`: which point of a grid is best on the validation part."""

import logging

import pandas as pd

from ganlm.files import complete, read_json, write_json
from ganlm.logs import stage_log
from ganlm.tuning import FACTS, decision, row


def main(snakemake) -> None:
    """One row per point, and the winner with a block for `models`."""
    name, points = snakemake.wildcards.tune, snakemake.params.points
    with stage_log(snakemake.log[0], f"tune {name}"):
        sidecars = {
            point: read_json(path, *FACTS) for point, path in zip(points, snakemake.input, strict=True)
        }
        rows = [row(point, keys, sidecars[point]) for point, keys in points.items()]
        with complete(snakemake.output.points) as path:
            pd.DataFrame(rows).to_csv(path, index=False)
        decided = decision(rows)
        block = sidecars[decided["winner"]["point"]]["parameters"]
        write_json(snakemake.output.winner, {"model": snakemake.params.model, "block": block} | decided)
        logging.info("%(point)s wins with %(best_validation_bpc).4f bits on validation", decided["winner"])


if __name__ == "__main__":
    main(snakemake)
