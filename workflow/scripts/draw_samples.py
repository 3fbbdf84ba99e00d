"""Stage `draw_samples`: texts that a saved model, or an own generator, writes from nothing."""

import importlib
import logging
from dataclasses import asdict

from ganlm.corpus import Corpus
from ganlm.files import write_json, write_text
from ganlm.generator import Surroundings
from ganlm.logs import stage_log
from ganlm.randomness import keyed_rng
from ganlm.samples import Settings, draw, lines


def main(snakemake) -> None:
    """Load the model, draw, write the texts for people and for programs."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    with stage_log(snakemake.log[0], f"draw_samples {name}"):
        alphabet = Corpus.load(snakemake.input.corpus).alphabet
        settings = Settings(**snakemake.params.samples)
        module = importlib.import_module(f"ganlm.models.{parameters['kind']}")
        surroundings = Surroundings(alphabet, settings.seed, snakemake.threads, snakemake.resources.device)
        model = module.load(parameters, list(snakemake.input.model), surroundings)
        tokens = draw(model, settings.count, settings.length, keyed_rng(settings.seed, name, "samples"))
        texts = [alphabet.decode(row) for row in tokens]
        write_text(snakemake.output.lines, lines(texts))
        write_json(snakemake.output.texts, {"model": name, "samples": texts} | asdict(settings))
        logging.info("%s: %r", name, texts[0])


if __name__ == "__main__":
    main(snakemake)
