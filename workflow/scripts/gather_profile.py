"""Stage `gather_profile`: put together what the shards of an evaluation say of bins of tokens."""

from ganlm.files import complete
from ganlm.logs import stage_log
from ganlm.profile import gathered
from ganlm.resultfiles import read_shard


def main(snakemake) -> None:
    """One row per bin and stretch, whatever the number of shards."""
    with stage_log(snakemake.log[0], f"gather_profile {snakemake.wildcards.model}"):
        rows = gathered(map(read_shard, snakemake.input))
        with complete(snakemake.output[0]) as path:
            rows.to_csv(path, index=False)


if __name__ == "__main__":
    main(snakemake)
