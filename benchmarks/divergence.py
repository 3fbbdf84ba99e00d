"""Why does training at a constant rate diverge, and what prevents it? It goes on in several ways.

    snakemake --configfile config/text8-cpu.yaml results/text8-cpu/models/lstm-v2/model.json
    python benchmarks/divergence.py results/text8-cpu --model lstm-v2

The first command is to be interrupted some epochs before trouble begins (Ctrl-C, then `kill` the stage). The
checkpoint it leaves holds weights and Adam's moments; the same command goes on from it afterwards. The first
way here is what it would have done, bit by bit; others differ in one setting, or in the seed of windows and
dropout. A way ends with the epoch in which it diverges by the rule of the stage.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from workbench import Line, print_table

from ganlm.corpus import load_tokens
from ganlm.device import choose_device, settled, use_threads
from ganlm.models.lstm import Architecture, LanguageModel
from ganlm.training import mle
from ganlm.training.checkpoint import restore

VOCABULARY = 27


@dataclass(frozen=True)
class Way:
    """How training goes on: settings that change, and Adam's memory of squared gradients."""

    changes: dict = field(default_factory=dict)
    beta2: float = 0.999


WAYS = {
    "as it was": Way(),
    "other windows": Way({"seed": 2}),
    "float32": Way({"precision": "float32"}),
    "beta2 0.99": Way(beta2=0.99),
    "rate 0.003": Way({"learning_rate": 0.003}),
    "clip 1": Way({"clip": 1.0}),
    "clip 0.25": Way({"clip": 0.25}),
    "clip 0.25, other windows": Way({"clip": 0.25, "seed": 2}),
}


def arguments() -> argparse.Namespace:
    """Which checkpoint, and how far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a run")
    parser.add_argument("--model", default="lstm-v2")
    parser.add_argument("--checkpoint", type=Path, help="another one than that of the model")
    parser.add_argument("--epochs", type=int, default=60, help="of each way (%(default)s)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


@dataclass(frozen=True)
class Interrupted:
    """A checkpoint of `pretrain_lm`, and all that it depends on."""

    path: Path
    parameters: dict
    epoch: int

    @classmethod
    def read(cls, path: Path) -> "Interrupted":
        """Its key names the hyper-parameters."""
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        history = json.loads(metadata["progress"])["history"]
        return cls(path, json.loads(metadata["key"])[1], len(history))

    @property
    def settings(self) -> mle.Settings:
        """Hyper-parameters of training, as they were."""
        return mle.Settings(**settled(self.parameters["training"], choose_device()))

    def go_on(self, way: Way, tokens: np.ndarray, epochs: int) -> tuple[list[dict], LanguageModel]:
        """Records of further epochs, up to the one that diverged, and the network then."""
        device, settings = choose_device(), replace(self.settings, **way.changes)
        network = LanguageModel(VOCABULARY, Architecture.parse(self.parameters)).to(device)
        adam = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
        with safe_open(self.path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        restore(tensors, network=network, optimizer=adam)
        adam.param_groups[0]["betas"] = (0.9, way.beta2)
        records = []
        for epoch in range(self.epoch + 1, self.epoch + epochs + 1):
            records.append(mle._epoch(network, adam, tokens, epoch, settings, device))
            if has_diverged(records[-1]):
                break
        return records, network


def has_diverged(record: dict) -> bool:
    """The rule of the stage; NaN counts too."""
    return not record["loss"] <= 2 * math.log2(VOCABULARY)


def lines(options: argparse.Namespace) -> Iterator[Line]:
    """One per way of going on."""
    path = options.checkpoint or options.results / "models" / options.model / "resume.safetensors"
    interrupted = Interrupted.read(path)
    tokens, valid = (load_tokens(options.results / "corpus" / f"{part}.npy") for part in ("train", "valid"))
    for name in options.ways:
        records, network = interrupted.go_on(WAYS[name], tokens, options.epochs)
        last, norms = records[-1], [record["largest_gradient_norm"] for record in records]
        if has_diverged(last):
            end = f"diverged in epoch {last['epoch']}"
            norms.pop()
        else:
            bits = mle.validate(network, valid, interrupted.settings, choose_device())
            end = f"did not diverge up to epoch {last['epoch']}, {bits:.3f} bits on validation"
        largest = max(norms, default=math.nan)
        yield Line(f"from epoch {interrupted.epoch}: {name}", f"{end}; largest gradient before {largest:.2g}")


def main() -> None:
    """Print the table."""
    options = arguments()
    use_threads(options.threads)
    print_table(lines(options))


if __name__ == "__main__":
    main()
