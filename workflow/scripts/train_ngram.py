"""Stage `train_ngram`: count the n-grams of the train part."""

import logging
import time
from pathlib import Path

import pandas as pd

from ganlm.corpus import Corpus, load_tokens
from ganlm.files import complete, write_json
from ganlm.logs import stage_log
from ganlm.models.ngram import NGram, Settings
from ganlm.sidecar import sidecar


def main(snakemake) -> None:
    """Train, save, and say what was saved."""
    parameters = snakemake.params.model
    with stage_log(snakemake.log[0], f"train_ngram {snakemake.wildcards.model}"):
        corpus = Corpus.load(snakemake.input.corpus)
        tokens = load_tokens(Path(snakemake.input.train))
        begin = time.monotonic()
        model = NGram.train(tokens, len(corpus.alphabet), Settings.parse(parameters))
        rate = {"epoch": 1, "tokens": len(tokens), "seconds": time.monotonic() - begin}
        with complete(snakemake.output.rates) as path:
            pd.DataFrame([rate]).to_csv(path, index=False)
        with complete(snakemake.output.weights) as path:
            model.save(path)
        sizes = [len(level.keys) for level in model.trie.levels]
        facts = sidecar(
            parameters,
            corpus,
            snakemake.params.code,
            distinct_ngrams=sizes,
            training_tokens=len(tokens),
        )
        write_json(snakemake.output.sidecar, facts)
        logging.info("%s tokens, distinct n-grams by length: %s", f"{len(tokens):,}", sizes)


if __name__ == "__main__":
    main(snakemake)
