"""Stage `pretrain_lm`: train an LSTM language model by maximum likelihood."""

import logging
from pathlib import Path

import torch

from ganlm.corpus import Corpus, load_tokens
from ganlm.device import arithmetic, choose_device, settled, use_threads
from ganlm.files import complete, write_json
from ganlm.locks import only_writer
from ganlm.logs import stage_log
from ganlm.models.lstm import Architecture, LanguageModel, save
from ganlm.sidecar import sidecar
from ganlm.training import history, mle
from ganlm.training.checkpoint import Checkpoint


def main(snakemake) -> None:
    """Train from the start or from the checkpoint, then write the best and the last weights."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    folder = Path(snakemake.output.best).parent
    alone = only_writer(folder / "resume.lock", snakemake.resources.get("lock_seconds", 5))
    with stage_log(snakemake.log[0], f"pretrain_lm {name}"), alone:
        use_threads(snakemake.threads)
        corpus = Corpus.load(snakemake.input.corpus)
        device = choose_device(snakemake.resources.device)
        settings = mle.Settings(**settled(parameters["training"], device))
        torch.manual_seed(settings.seed)
        network = LanguageModel(len(corpus.alphabet), Architecture.parse(parameters))
        size = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
        logging.info("%s parameters on %s in %s", f"{size:,}", device, settings.precision)
        where = arithmetic(settings.precision, device)
        key = [corpus.sha256, parameters, where, snakemake.params.code, snakemake.params.torch]
        checkpoint = Checkpoint(folder, key, snakemake.resources.checkpoint_seconds)
        tokens = [load_tokens(Path(snakemake.input[part])) for part in ("train", "valid")]
        with checkpoint.saving_on_sigterm():
            outcome = mle.train(network, *tokens, settings, device, checkpoint)
        with complete(snakemake.output.last) as path:
            save(network.cpu(), path)
        network.load_state_dict(outcome.best)
        with complete(snakemake.output.best) as path:
            save(network, path)
        history.write(outcome.history, outcome.seconds, snakemake.output.history, snakemake.output.rates)
        facts = sidecar(
            parameters,
            corpus,
            snakemake.params.code,
            size=size,
            training_tokens=sum(record["tokens"] for record in outcome.history),
            best_epoch=outcome.best_epoch,
            best_validation_bpc=outcome.best_bpc,
            diverged_in=outcome.diverged_in,
            torch=snakemake.params.torch,
            device=device.type,
            precision=settings.precision,
        )
        write_json(snakemake.output.sidecar, facts)


if __name__ == "__main__":
    main(snakemake)
