"""What bfloat16 does to the bits of language models that a run has trained, their best and last weights.

    python benchmarks/precision.py results/text8-cpu --models lstm-v1 lstm-v2

The same windows of the validation part are read in both precisions; the standard error is that of the mean
difference over windows. Recurrent weights grow along training, and what rounding does may grow with them, so
it is trained weights that must be asked.
"""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from workbench import Line, print_table

from ganlm.corpus import load_tokens
from ganlm.device import choose_device, use_threads
from ganlm.files import read_json
from ganlm.models.lstm import Architecture, LanguageModel, Lstm
from ganlm.models.weights import load_weights

VOCABULARY = 27
WINDOW = 1000
LIMIT = 0.001


def arguments() -> argparse.Namespace:
    """Which models, on how much text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a run")
    parser.add_argument("--models", nargs="+", default=["lstm-v1", "lstm-v2"])
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def bits(model: Lstm, windows: np.ndarray, precision: str) -> np.ndarray:
    """Mean of each window."""
    rounded = torch.autocast(model.device.type, dtype=torch.bfloat16)
    with rounded if precision == "bfloat16" else nullcontext():
        return model.surprisal(model.start(len(windows)), windows)[0].mean(axis=1)


def lines(options: argparse.Namespace) -> Iterator[Line]:
    """One per file of weights."""
    part = load_tokens(options.results / "corpus" / "valid.npy")
    windows = np.asarray(part[: options.characters // WINDOW * WINDOW]).reshape(-1, WINDOW)
    for name in options.models:
        folder = options.results / "models" / name
        parameters = read_json(folder / "model.json", "parameters")["parameters"]
        for which, file in (("best", "model"), ("last", "last")):
            network = LanguageModel(VOCABULARY, Architecture.parse(parameters))
            load_weights(network, folder / f"{file}.safetensors")
            model = Lstm(network, choose_device())
            exact = bits(model, windows, "float32")
            moved = bits(model, windows, "bfloat16") - exact
            error = moved.std(ddof=1) / len(moved) ** 0.5
            rms = network.lstm.weight_hh_l0.square().mean().sqrt().item()
            yield Line(
                f"{name}, {which} weights, recurrent rms {rms:.2f}: {exact.mean():.3f} bits, changed by",
                f"{moved.mean():.5f} ± {error:.5f}",
                f"at most {LIMIT:g}",
                abs(moved.mean()) <= LIMIT,
            )


def main() -> None:
    """Print the table."""
    options = arguments()
    use_threads(options.threads)
    print_table(lines(options))


if __name__ == "__main__":
    main()
