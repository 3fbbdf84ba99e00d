"""Stage `split_corpus`: encode a text and cut it into train, validation and test part."""

import logging
from pathlib import Path

from ganlm.corpus import CorpusSettings, split_corpus
from ganlm.files import write_json
from ganlm.logs import stage_log
from ganlm.textfile import read_chunks
from ganlm.tokens import first_characters


def main(snakemake) -> None:
    """Read the text once, write three token files and their description."""
    with stage_log(snakemake.log[0], "split_corpus"):
        parameters = dict(snakemake.params.corpus)
        characters = parameters.pop("characters")
        chunks = read_chunks(Path(snakemake.input.text))
        if characters is not None:
            chunks = first_characters(chunks, characters)
        paths = {part: Path(snakemake.output[part]) for part in ("train", "valid", "test")}
        corpus = split_corpus(chunks, CorpusSettings(**parameters), paths)
        write_json(snakemake.output.corpus, corpus.to_json())
        sizes = ", ".join(f"{part} {size:,}" for part, size in corpus.tokens.items())
        logging.info("%s symbols; tokens: %s", f"{len(corpus.alphabet):,}", sizes)
        for part, share in corpus.unknown_share.items():
            if share:
                logging.info("%.4f%% of the %s part are unknown", 100 * share, part)


if __name__ == "__main__":
    main(snakemake)
