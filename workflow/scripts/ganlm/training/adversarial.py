"""What both adversarial trainings share: generators kept on the way, and a loop that can stop anywhere.

All randomness of a step is keyed by its number, so training goes on bit by bit from between any two steps.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ganlm.files import complete
from ganlm.logs import Progress
from ganlm.models.weights import kept_prefix
from ganlm.training.checkpoint import Checkpoint, collect, restore
from ganlm.training.divergence import check_finite, check_finite_tensors

logger = logging.getLogger(__name__)


class Settings(Protocol):
    """What the loop asks of the hyper-parameters."""

    keep: tuple[int, ...]
    precision: str

    @property
    def steps(self) -> int:
        """Of the whole training."""


@dataclass(kw_only=True)
class Players(ABC):
    """Everything that training changes."""

    generator: nn.Module
    generator_adam: torch.optim.Optimizer
    history: list[dict] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    kept: dict[str, Tensor] = field(default_factory=dict)

    @abstractmethod
    def parts(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Networks and optimizers, by the name under which a checkpoint holds them."""

    def keep(self, epoch: int) -> None:
        """Remember the generator as it is now."""
        for name, tensor in self.generator.state_dict().items():
            self.kept[f"{kept_prefix(epoch)}{name}"] = tensor.detach().cpu().clone()

    def weights(self, epoch: int) -> dict[str, Tensor]:
        """The generator that was kept after an epoch."""
        prefix = kept_prefix(epoch)
        return {name.removeprefix(prefix): t for name, t in self.kept.items() if name.startswith(prefix)}

    def validation(self, epochs: Sequence[int]) -> dict[int, float]:
        """Bits on the validation part at the end of some epochs."""
        found = {record["epoch"]: record.get("validation_bpc") for record in self.history}
        return {epoch: found[epoch] for epoch in epochs}

    def write(self, last: Path | str, kept: Path | str, best: Path | str, best_epoch: int) -> None:
        """The generators that training ended with, that were kept, and that is the best of these."""
        ended = {name: tensor.cpu().contiguous() for name, tensor in self.generator.state_dict().items()}
        for path, tensors in ((last, ended), (kept, self.kept), (best, self.weights(best_epoch))):
            with complete(path) as temporary:
                save_file(tensors, temporary)


class Loop(ABC):
    """Steps of both players, one after the other."""

    stage: ClassVar[str]
    unit: ClassVar[str]

    def __init__(self, players: Players, settings: Settings, device: torch.device) -> None:
        self.players, self.settings, self.device = players, settings, device

    @abstractmethod
    def step(self, step: int) -> dict[str, float]:
        """What a step came to; it names its `epoch`, and at the end of one its `validation_bpc`."""

    @abstractmethod
    def ends_epoch(self, step: int) -> bool:
        """Whether the generator may be kept after a step."""

    def is_recorded(self, step: int) -> bool:  # noqa: ARG002
        """Whether a step is in the history."""
        return True

    def run(self, checkpoint: Checkpoint) -> None:
        """All steps that are left; the generators of the epochs in `keep` are kept."""
        players, settings, saved = self.players, self.settings, 0
        if (found := checkpoint.load()) is not None:
            with checkpoint.fitting():
                saved = self._resume(*found)
            logger.info("resuming after step %d of %d", saved, settings.steps)
        line = Progress(self.stage, settings.steps, self.unit, start=saved)
        for step in range(saved, settings.steps):
            begin = time.monotonic()
            record = {"step": step} | self.step(step)
            kept = f"{checkpoint.path} keeps {saved} {self.unit}" if saved else "nothing is kept"
            where = f"step {step} of {self.stage}, epoch {record['epoch']}"
            check_finite(record, where, kept)
            if record["epoch"] in settings.keep and self.ends_epoch(step):
                players.keep(record["epoch"])
            if self.is_recorded(step):
                players.history.append(record)
                players.seconds.append(time.monotonic() - begin)
            line.update(step + 1, **record)
            if checkpoint.due() or step + 1 == settings.steps:
                tensors = collect(**players.parts()) | players.kept
                check_finite_tensors(tensors, where, kept)
                saved = step + 1
                progress = {"step": saved, "history": players.history, "seconds": players.seconds}
                checkpoint.save(tensors, progress)

    def _resume(self, tensors: dict[str, Tensor], progress: dict) -> int:
        """Put everything back in place; the number of steps that are done."""
        players = self.players
        players.kept = {name: t for name, t in tensors.items() if name.split("/")[0] not in players.parts()}
        # Whether these fit would otherwise only show when they are evaluated.
        for weights in filter(None, map(players.weights, self.settings.keep)):
            players.generator.load_state_dict(weights)
        restore(tensors, **players.parts())
        players.history, players.seconds = progress["history"], progress["seconds"]
        return progress["step"]

    def _autocast(self) -> torch.autocast:
        enabled = self.settings.precision == "bfloat16"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=enabled)
