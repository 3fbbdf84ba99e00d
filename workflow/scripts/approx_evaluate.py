"""Stage `approx_evaluate`: how many bits a model needs for a shard of the test part, block by block."""

import importlib
import logging
from glob import escape
from pathlib import Path

import pandas as pd

from ganlm.corpus import Corpus, load_tokens
from ganlm.files import complete, read_json
from ganlm.generator import Surroundings
from ganlm.locks import only_writer
from ganlm.logs import stage_log
from ganlm.measurement import Row, Settings, Text, tasks
from ganlm.provenance import file_digest
from ganlm.resume import Journal


def settled_draws(draws: int | str, chosen: str) -> int:
    """The number in the config, or the one that choose_n found."""
    if draws != "chosen":
        return draws
    found = read_json(chosen, "model", "draws")
    if found["draws"] is None:
        raise ValueError(f"choose_n found no N for {found['model']}: raise choose_n.max_draws")
    return found["draws"]


def dependencies(snakemake, model: object) -> tuple[dict, list[str]]:
    """Parameters and files that rows depend on, with what `precision: auto` came to on this node."""
    model_block = snakemake.params.model | {"reply_seconds": None}
    precision = getattr(model, "arithmetic", snakemake.params.precision)
    files = [file_digest(Path(path)) for path in snakemake.input.model]
    return dict(snakemake.params) | {"model": model_block, "precision": precision}, files


def main(snakemake) -> None:
    """Load the model, measure it, write its rows."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    output = Path(snakemake.output[0])
    # All shards share a folder: only half files of this one are without a writer.
    alone = only_writer(
        output.with_suffix(".lock"),
        snakemake.resources.get("lock_seconds", 5),
        (f".{escape(output.stem)}.*.part",),
    )
    with stage_log(snakemake.log[0], f"approx_evaluate {name} {snakemake.wildcards.scatteritem}"), alone:
        corpus = Corpus.load(snakemake.input.corpus)
        draws = settled_draws(snakemake.params.evaluation["draws"], snakemake.input.chosen)
        settings = Settings.parse(snakemake.params.evaluation, draws)
        digest = corpus.sha256[snakemake.params.part]
        text = Text(load_tokens(Path(snakemake.input.text)), digest, len(corpus.alphabet))
        module = importlib.import_module(f"ganlm.models.{parameters['kind']}")
        surroundings = Surroundings(
            corpus.alphabet,
            settings.seed,
            snakemake.threads,
            snakemake.resources.device,
            snakemake.params.precision,
        )
        model = module.load(parameters, list(snakemake.input.model), surroundings)
        measure = importlib.import_module(f"ganlm.measure_{model.strength}").measure
        key = [corpus.sha256, draws, *dependencies(snakemake, model)]
        journal = Journal(output.with_suffix(".resume"), key)
        rows: list[Row] = []
        shard = tuple(map(int, snakemake.wildcards.scatteritem.split("-of-")))
        for task in tasks(name, model.strength, text, snakemake.params.windows, settings, shard):
            rows += measure(model, task, journal, model.workers)
            logging.info("%s: %d blocks done", task.protocol.name, len(task.blocks))
        with complete(output) as path:
            pd.DataFrame(rows, columns=Row._fields).to_csv(path, index=False)


if __name__ == "__main__":
    main(snakemake)
