"""Stage `gather_evaluation`: put the shards of an evaluation together and reduce them."""

import logging

import pandas as pd

from ganlm.files import complete, write_json
from ganlm.logs import stage_log
from ganlm.measurement import BLOCK_COLUMNS, WHOLE
from ganlm.resultfiles import read_shard
from ganlm.summary import summarise


def main(snakemake) -> None:
    """Rows in one order whatever the number of shards, and one summary per estimator."""
    name = snakemake.wildcards.model
    with stage_log(snakemake.log[0], f"gather_evaluation {name}"):
        shards = [read_shard(path) for path in snakemake.input]
        if not any(map(len, shards)):
            raise ValueError(f"no estimator in evaluation.estimators applies to {name}")
        rows = pd.concat([shard for shard in shards if len(shard)])
        order = ["protocol", "estimand", "estimator", "draws", "block", "group"]
        rows = rows[rows["view"] == WHOLE].sort_values(order, kind="stable")
        results = summarise(rows, snakemake.params.level)
        with complete(snakemake.output.blocks) as path:
            rows.to_csv(path, index=False, columns=BLOCK_COLUMNS)
        write_json(snakemake.output.summary, {"model": name, "results": results})
        for result in results:
            if (result["estimand"], result["estimator"]) in (("sample", "exact"), ("sample", "harmonic")):
                logging.info("%(protocol)s %(estimator)s: %(mean).4f in [%(low).4f, %(high).4f]", result)


if __name__ == "__main__":
    main(snakemake)
