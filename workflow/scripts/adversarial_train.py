"""Stage `adversarial_train`: SeqGAN, from a pre-trained language model."""

import logging
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file, save_file

from ganlm.corpus import Corpus, load_tokens
from ganlm.device import choose_device
from ganlm.files import complete, read_json, write_json
from ganlm.logs import stage_log
from ganlm.models.lstm import Architecture, LanguageModel, save
from ganlm.provenance import file_digest
from ganlm.sidecar import sidecar
from ganlm.training.checkpoint import Checkpoint, only_writer
from ganlm.training.mle import validate
from ganlm.training.seqgan import Players, Settings, Trainer


def main(snakemake) -> None:
    """Train from the start or from the checkpoint; keep the generators of the chosen epochs."""
    name, parameters = snakemake.wildcards.model, snakemake.params.model
    folder = Path(snakemake.output.best).parent
    with stage_log(snakemake.log[0], f"adversarial_train {name}"), only_writer(folder):
        torch.set_num_threads(snakemake.threads)
        corpus = Corpus.from_json(read_json(snakemake.input.corpus))
        settings = Settings(**parameters["training"])
        torch.manual_seed(settings.seed)
        network = LanguageModel(len(corpus.alphabet), Architecture.parse(parameters["architecture"]))
        network.load_state_dict(load_file(snakemake.input.start))
        device = choose_device()
        players = Players.from_generator(network, len(corpus.alphabet), settings, device)
        train, valid = (load_tokens(Path(snakemake.input[part])) for part in ("train", "valid"))
        start = file_digest(Path(snakemake.input.start))
        key = [corpus.sha256, start, parameters, snakemake.params.code, snakemake.params.torch]
        checkpoint = Checkpoint(folder, key, snakemake.resources.checkpoint_seconds)
        Trainer(players, train, valid, settings, device).run(checkpoint)
        with complete(snakemake.output.last) as path:
            save(players.generator, path)
        scores = {}
        for epoch in settings.keep:
            network.load_state_dict(players.weights(epoch))
            scores[epoch] = validate(network, valid, settings, device)
        best = min(scores, key=scores.get)
        logging.info("best of the kept epochs on validation: %d, %.4f bits", best, scores[best])
        for path, tensors in (
            (snakemake.output.kept, players.kept),
            (snakemake.output.best, players.weights(best)),
        ):
            with complete(path) as temporary:
                save_file(tensors, temporary)
        with complete(snakemake.output.history) as path:
            pd.DataFrame(players.history).to_csv(path, index=False)
        facts = sidecar(
            parameters,
            corpus,
            snakemake.params.code,
            best_epoch=best,
            validation_bpc=scores,
            torch=snakemake.params.torch,
        )
        write_json(snakemake.output.sidecar, facts)
        checkpoint.delete()


if __name__ == "__main__":
    main(snakemake)
