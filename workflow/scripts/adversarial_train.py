"""Stage `adversarial_train`: SeqGAN, from a pre-trained language model."""

import logging
from pathlib import Path

import torch

from ganlm.corpus import Corpus, load_tokens
from ganlm.device import arithmetic, choose_device, settled, use_threads
from ganlm.files import write_json
from ganlm.locks import only_writer
from ganlm.logs import stage_log
from ganlm.models.lstm import Architecture, LanguageModel
from ganlm.models.weights import load_weights
from ganlm.provenance import file_digest
from ganlm.sidecar import sidecar
from ganlm.training import history
from ganlm.training.checkpoint import Checkpoint
from ganlm.training.seqgan import Players, Settings, Trainer


def main(snakemake) -> None:
    """Train from the start or from the checkpoint; keep the generators of the chosen epochs."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    folder = Path(snakemake.output.best).parent
    alone = only_writer(folder / "resume.lock", snakemake.resources.get("lock_seconds", 5))
    with stage_log(snakemake.log[0], f"adversarial_train {name}"), alone:
        use_threads(snakemake.threads)
        corpus = Corpus.load(snakemake.input.corpus)
        device = choose_device(snakemake.resources.device)
        settings = Settings(**settled(parameters["training"], device))
        torch.manual_seed(settings.seed)
        network = LanguageModel(len(corpus.alphabet), Architecture.parse(parameters["architecture"]))
        load_weights(network, snakemake.input.start)
        players = Players.from_generator(network, len(corpus.alphabet), settings, device)
        train, valid = (load_tokens(Path(snakemake.input[part])) for part in ("train", "valid"))
        start = file_digest(Path(snakemake.input.start))
        where = arithmetic(settings.precision, device)
        key = [corpus.sha256, start, parameters, where, snakemake.params.code, snakemake.params.torch]
        checkpoint = Checkpoint(folder, key, snakemake.resources.checkpoint_seconds)
        with checkpoint.saving_on_sigterm():
            Trainer(players, train, valid, settings, device).run(checkpoint)
        scores = players.validation(settings.keep)
        best = min(scores, key=scores.get)
        logging.info("best of the kept epochs on validation: %d, %.4f bits", best, scores[best])
        output = snakemake.output
        players.write(output.last, output.kept, output.best, best)
        history.write(players.history, players.seconds, output.history, output.rates)
        facts = sidecar(
            parameters,
            corpus,
            snakemake.params.code,
            best_epoch=best,
            validation_bpc=scores,
            torch=snakemake.params.torch,
            device=device.type,
            precision=settings.precision,
        )
        write_json(output.sidecar, facts)


if __name__ == "__main__":
    main(snakemake)
