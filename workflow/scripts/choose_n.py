"""Stage `choose_n`: how many draws the paper's rule asks for, and what a target in bits would take."""

import importlib
from pathlib import Path

import pandas as pd

from ganlm import choose_n
from ganlm.corpus import Corpus, load_tokens
from ganlm.files import complete, write_json
from ganlm.generator import Surroundings
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """Run the pilot, write its curve and what follows from it."""
    name, parameters, window = snakemake.wildcards.model, snakemake.params.model, snakemake.params.window
    with stage_log(snakemake.log[0], f"choose_n {name}"):
        corpus = Corpus.load(snakemake.input.corpus)
        settings = choose_n.Settings.parse(snakemake.params.choose_n)
        tokens = load_tokens(Path(snakemake.input.test))
        module = importlib.import_module(f"ganlm.models.{parameters['kind']}")
        surroundings = Surroundings(
            corpus.alphabet, snakemake.params.seed, snakemake.threads, snakemake.resources.device
        )
        model = module.load(parameters, list(snakemake.input.model), surroundings)
        pilots = {"explicit": choose_n.explicit, "latent": choose_n.latent, "sampled": choose_n.sampled}
        pilot = pilots.get(model.strength)
        if pilot is None:
            raise ValueError(
                f"choose_n cannot look at {name}: it has no pilot for {model.strength} generators"
            )
        result = pilot(model, tokens, window, settings, (snakemake.params.seed, name, "choose_n"))
        curve = {"draws": result.curve.draws, "step": result.curve.step, "error": result.curve.error}
        with complete(snakemake.output.curve) as path:
            pd.DataFrame(curve).to_csv(path, index=False)
        positions = snakemake.params.characters or len(tokens)
        found = choose_n.summary(result, settings, len(corpus.alphabet), window, min(positions, len(tokens)))
        write_json(snakemake.output.chosen, {"model": name, "window": window} | found)


if __name__ == "__main__":
    main(snakemake)
