"""Stage `approx_evaluate`: how many bits a model needs for the test part, block by block."""

import importlib
import logging
from pathlib import Path

import pandas as pd

from ganlm.corpus import Corpus, load_tokens
from ganlm.evaluation import Protocol, evaluate
from ganlm.files import complete, read_json, write_json
from ganlm.logs import stage_log
from ganlm.summary import summarise


def main(snakemake) -> None:
    """Evaluate one model under every protocol."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    settings = snakemake.params.evaluation
    with stage_log(snakemake.log[0], f"approx_evaluate {name}"):
        corpus = Corpus.from_json(read_json(snakemake.input.corpus))
        tokens = load_tokens(Path(snakemake.input.test))
        module = importlib.import_module(f"ganlm.models.{parameters['kind']}")
        model = module.load(parameters, list(snakemake.input.model), len(corpus.alphabet))
        protocols = [Protocol.parse(window) for window in settings["windows"]]
        rows = pd.concat([evaluate(model, tokens, protocol, settings["block"]) for protocol in protocols])
        results = summarise(rows, settings["level"])
        with complete(snakemake.output.blocks) as path:
            rows.to_csv(path, index=False)
        write_json(snakemake.output.summary, {"model": name, "parameters": parameters, "results": results})
        for result in results:
            logging.info("%(protocol)s: %(bits_per_token).4f bits in [%(low).4f, %(high).4f]", result)


if __name__ == "__main__":
    main(snakemake)
