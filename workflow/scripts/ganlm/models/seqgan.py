"""A SeqGAN generator: the LSTM language model with the weights of one epoch of adversarial training."""

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ganlm.device import choose_device
from ganlm.generator import Surroundings
from ganlm.models.lstm import Architecture, LanguageModel, Lstm


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Lstm:
    """The best generator on validation, or with `epoch` the one that was kept after that epoch."""
    network = LanguageModel(surroundings.vocabulary, Architecture.parse(parameters["architecture"]))
    prefix = f"epoch-{parameters['epoch']}/" if "epoch" in parameters else ""
    try:
        weights = load_file(files[0])
        network.load_state_dict(
            {name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)}
        )
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{files[0]} holds no weights {prefix}* of an LSTM of these sizes: delete it to train again"
        ) from error
    torch.set_num_threads(surroundings.workers)
    return Lstm(network, choose_device())
