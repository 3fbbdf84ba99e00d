"""Weights in files: of one network, or of all that training kept on its way. Loading them runs no code."""

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn


def kept_prefix(epoch: int) -> str:
    """Before the names of the weights that were kept after an epoch; `epoch-1/` is none of `epoch-10/`."""
    return f"epoch-{epoch}/"


def load_weights(network: nn.Module, path: str, epoch: int | None = None) -> None:
    """Put the weights of a file into a network, with `epoch` those that were kept after it."""
    prefix = "" if epoch is None else kept_prefix(epoch)
    try:
        weights = load_file(path)
        network.load_state_dict(
            {name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)}
        )
    except (SafetensorError, RuntimeError) as error:
        what = f"weights {prefix}*" if prefix else "weights"
        raise ValueError(
            f"{path} holds no {what} of a model of these sizes: delete it to train again"
        ) from error
