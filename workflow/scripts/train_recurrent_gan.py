"""Stage `train_recurrent_gan`: a Recurrent GAN, from nothing, over a curriculum of lengths."""

import logging
from pathlib import Path

import torch

from ganlm.corpus import Corpus, load_tokens
from ganlm.device import arithmetic, choose_device, settled, use_threads
from ganlm.files import write_json
from ganlm.locks import only_writer
from ganlm.logs import stage_log
from ganlm.models.recurrent_gan import Architecture, Critic, Generator
from ganlm.sidecar import sidecar
from ganlm.training import history
from ganlm.training.checkpoint import Checkpoint
from ganlm.training.wgan import Players, Settings, Trainer


def main(snakemake) -> None:
    """Train from the start or from the checkpoint; keep the generators of the chosen lengths."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    folder = Path(snakemake.output.best).parent
    alone = only_writer(folder / "resume.lock", snakemake.resources.get("lock_seconds", 5))
    with stage_log(snakemake.log[0], f"train_recurrent_gan {name}"), alone:
        use_threads(snakemake.threads)
        corpus = Corpus.load(snakemake.input.corpus)
        device = choose_device(snakemake.resources.device)
        settings = Settings(**settled(parameters["training"], device))
        torch.manual_seed(settings.seed)
        sizes = len(corpus.alphabet), Architecture.parse(parameters)
        network = Generator(*sizes)
        players = Players.at_start(network, Critic(*sizes), settings, device)
        train, valid = (load_tokens(Path(snakemake.input[part])) for part in ("train", "valid"))
        where = arithmetic(settings.precision, device)
        key = [corpus.sha256, parameters, where, snakemake.params.code, snakemake.params.torch]
        checkpoint = Checkpoint(folder, key, snakemake.resources.checkpoint_seconds)
        with checkpoint.saving_on_sigterm():
            Trainer(players, train, valid, settings, device).run(checkpoint)
        scores = players.validation(settings.keep)
        best = min(scores, key=scores.get)
        logging.info("best of the kept lengths on validation: %d, %.4f bits", best, scores[best])
        output = snakemake.output
        players.write(output.last, output.kept, output.best, best)
        history.write(players.history, players.seconds, output.history, output.rates)
        facts = sidecar(
            parameters,
            corpus,
            snakemake.params.code,
            size=sum(parameter.numel() for parameter in network.parameters()),
            updates=settings.updates,
            best_length=best,
            validation_bpc=scores,
            torch=snakemake.params.torch,
            device=device.type,
            precision=settings.precision,
        )
        write_json(output.sidecar, facts)


if __name__ == "__main__":
    main(snakemake)
