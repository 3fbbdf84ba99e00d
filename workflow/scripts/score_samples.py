"""Stage `score_samples`: how much of what a model writes occurs in held-out text."""

from pathlib import Path

from ganlm.corpus import Corpus, load_tokens
from ganlm.files import read_json, write_json
from ganlm.logs import stage_log
from ganlm.textmetrics import ORDERS, cut, in_test


def main(snakemake) -> None:
    """Read the samples and the test part, write the shares."""
    with stage_log(snakemake.log[0], f"score_samples {snakemake.wildcards.model}"):
        drawn = read_json(snakemake.input.samples, "model", "samples", "count")
        alphabet = Corpus.load(snakemake.input.corpus).alphabet
        reference = cut(alphabet.decode(load_tokens(Path(snakemake.input.test))), snakemake.params.line)
        scores = [in_test(drawn["samples"], reference, order) for order in ORDERS]
        facts = {"model": drawn["model"], "samples": drawn["count"], "reference_line": snakemake.params.line}
        write_json(snakemake.output[0], facts | {"in_test": scores})


if __name__ == "__main__":
    main(snakemake)
