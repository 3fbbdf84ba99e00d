"""A SeqGAN generator: the LSTM language model with the weights of one epoch of adversarial training."""

from ganlm.generator import Surroundings
from ganlm.models.lstm import Architecture, LanguageModel, Lstm, ready
from ganlm.models.weights import load_weights


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Lstm:
    """The best generator on validation, or with `epoch` the one that was kept after that epoch."""
    network = LanguageModel(surroundings.vocabulary, Architecture.parse(parameters["architecture"]))
    load_weights(network, files[0], parameters.get("epoch"))
    return ready(network, surroundings)
