"""Why does training at a constant rate diverge, and what prevents it? It goes on in several ways.

    snakemake --configfile config/text8-cpu.yaml results/text8-cpu/models/lstm-v2/model.json
    python benchmarks/divergence.py results/text8-cpu --model lstm-v2

The first command is to be interrupted some epochs before trouble begins (Ctrl-C, then `kill` the stage). The
checkpoint it leaves holds weights and Adam's moments; the same command goes on from it afterwards.

First comes the effect of one update: the first whose gradient is larger than `--outlier`, on the same weights
and the same batch in several ways, each followed by an epoch of windows from several seeds. Then training
goes on to its end, or to the epoch in which it diverges by the rule of the stage: as it would have, bit by
bit, and otherwise. Trajectories that differ at all soon differ entirely: one that does not diverge proves
little.
"""

import argparse
import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from workbench import Line, print_table

from ganlm.corpus import load_tokens
from ganlm.device import settled, use_threads
from ganlm.models.lstm import Architecture, LanguageModel
from ganlm.randomness import keyed_seed
from ganlm.training import mle
from ganlm.training.checkpoint import restore

VOCABULARY = 27
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Way:
    """How training goes on: settings that change, and Adam's memory of squared gradients."""

    changes: dict = field(default_factory=dict)
    beta2: float = 0.999


AS_IT_WAS = Way()
WAYS = {
    "as it was": AS_IT_WAS,
    "clip 1": Way({"clip": 1.0}),
    "clip 0.25": Way({"clip": 0.25}),
    "beta2 0.99": Way(beta2=0.99),
    "float32": Way({"precision": "float32"}),
}
TRAJECTORIES = {
    "as it was": AS_IT_WAS,
    "clip 0.25": WAYS["clip 0.25"],
    "other windows": Way({"seed": 2}),
}
# Updates after an outlier in which it is felt, and those at the end of the epoch in which it is forgotten.
AFTER, END = slice(20), slice(-50, None)


def arguments() -> argparse.Namespace:
    """Which checkpoint, and how far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a run")
    parser.add_argument("--model", default="lstm-v2")
    parser.add_argument("--checkpoint", type=Path, help="another one than that of the model")
    parser.add_argument("--epochs", type=int, default=60, help="of each way (%(default)s)")
    parser.add_argument("--outlier", type=float, default=20, help="norm of a gradient (%(default)s)")
    parser.add_argument("--seeds", type=int, default=6, help="of windows after an outlier (%(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


@dataclass
class Training:
    """A network on its way."""

    network: LanguageModel
    adam: torch.optim.Optimizer
    settings: mle.Settings

    @classmethod
    def interrupted(cls, path: Path, way: Way) -> "Training":
        """As the checkpoint has it; the key in there names the hyper-parameters."""
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            parameters = json.loads(file.metadata()["key"])[1]
        settings = replace(mle.Settings(**settled(parameters["training"], CPU)), **way.changes)
        if settings.carry:
            raise SystemExit(
                f"{path} is of a model that carries its state; this benchmark starts every window anew"
            )
        network = LanguageModel(VOCABULARY, Architecture.parse(parameters))
        adam = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
        restore(tensors, network=network, optimizer=adam)
        adam.param_groups[0]["betas"] = (0.9, way.beta2)
        return cls(network, adam, settings)

    def changed(self, way: Way, seed: int) -> "Training":
        """A copy that goes on in another way."""
        twin = deepcopy(self)
        twin.settings = replace(self.settings, **way.changes | {"seed": seed})
        twin.adam.param_groups[0]["betas"] = (0.9, way.beta2)
        return twin

    def epoch(self, tokens: np.ndarray, number: int) -> dict:
        """A whole one."""
        return mle._epoch(self.network, self.adam, tokens, number, self.settings, CPU)

    def windows(self, tokens: np.ndarray, epoch: int) -> Iterator[Tensor]:
        """Of an epoch, with its dropout."""
        torch.manual_seed(keyed_seed(self.settings.seed, "dropout", epoch) % 2**63)
        self.adam.param_groups[0]["lr"] = self.settings.rate(epoch)
        self.network.train()
        yield from mle._on_device(mle.epoch_windows(tokens, epoch, self.settings), CPU)

    def gradient(self, windows: Tensor) -> tuple[float, float]:
        """Its norm before it is clipped, and the loss in bits."""
        loss, _ = mle._loss(self.network, windows, None, self.settings)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        return norm.item(), loss.item() / math.log(2)

    def update(self, windows: Tensor) -> float:
        """The loss before it, in bits."""
        _, loss = self.gradient(windows)
        self.adam.step()
        return loss


class Outlier(NamedTuple):
    """The update that is about to be made, its batch, and the random numbers of its dropout."""

    training: Training
    epoch: int
    norm: float
    windows: Tensor
    random: Tensor

    @classmethod
    def after(cls, path: Path, tokens: np.ndarray, epochs: range, larger_than: float) -> "Outlier | None":
        """The first one, if there is one in these epochs."""
        training = Training.interrupted(path, AS_IT_WAS)
        for epoch in epochs:
            for windows in training.windows(tokens, epoch):
                random = torch.get_rng_state()
                norm, _ = training.gradient(windows)
                if norm > larger_than:
                    return cls(training, epoch, norm, windows, random)
                training.adam.step()
        return None

    def losses(self, way: Way, tokens: np.ndarray, seed: int) -> list[float]:
        """Of the updates of one epoch after it."""
        training = self.training.changed(way, seed)
        torch.set_rng_state(self.random)
        training.update(self.windows)
        return [training.update(windows) for windows in training.windows(tokens, self.epoch + 1)]


def diverged(bits: float) -> bool:
    """The rule of the stage; NaN counts too."""
    return not bits <= 2 * math.log2(VOCABULARY)


def trajectory(path: Path, name: str, parts: dict[str, np.ndarray], epochs: range) -> Line:
    """A way to its end."""
    training, largest = Training.interrupted(path, TRAJECTORIES[name]), math.nan
    for epoch in epochs:
        record = training.epoch(parts["train"], epoch)
        if diverged(record["loss"]):
            end = f"diverged in epoch {epoch}"
            break
        largest = np.fmax(largest, record["largest_gradient_norm"])
    else:
        bits = mle.validate(training.network, parts["valid"], training.settings, CPU)
        end = f"did not diverge up to epoch {epoch}, {bits:.3f} bits on validation"
    return Line(f"from epoch {epochs.start}: {name}", f"{end}; largest gradient before {largest:.2g}")


def effects(outlier: Outlier, tokens: np.ndarray, seeds: int) -> Iterator[Line]:
    """What an outlier does in all ways."""
    for name, way in WAYS.items():
        found = np.array([outlier.losses(way, tokens, seed) for seed in range(1, seeds + 1)])
        after, end = found[:, AFTER].mean(axis=1), found[:, END].mean(axis=1)
        yield Line(
            f"a gradient of {outlier.norm:.0f} in epoch {outlier.epoch}: {name}",
            f"{after.mean():.3f} ± {after.std(ddof=1):.3f} bits in the next 20 updates, "
            f"{end.mean():.3f} ± {end.std(ddof=1):.3f} in the last 50 of an epoch",
        )


def lines(options: argparse.Namespace) -> Iterator[Line]:
    """What an outlier does, then all ways to their ends."""
    path = options.checkpoint or options.results / "models" / options.model / "resume.safetensors"
    parts = {part: load_tokens(options.results / "corpus" / f"{part}.npy") for part in ("train", "valid")}
    with safe_open(path, "pt") as file:
        first = len(json.loads(file.metadata()["progress"])["history"]) + 1
    epochs = range(first, first + options.epochs)
    outlier = Outlier.after(path, parts["train"], epochs, options.outlier)
    if outlier is not None:
        yield from effects(outlier, parts["train"], options.seeds)
    for name in TRAJECTORIES:
        yield trajectory(path, name, parts, epochs)


def main() -> None:
    """Print the table."""
    options = arguments()
    use_threads(options.threads)
    print_table(lines(options))


if __name__ == "__main__":
    main()
