"""Training that a crash cannot harm: one file holds all that the rest of the run depends on.

All randomness of a training step is keyed by its number, so a checkpoint between two steps needs tensors and
a step number only: what follows is bitwise what an uninterrupted run would have done, as far as the device
repeats itself, which a CPU does.
"""

import hashlib
import json
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ganlm.files import complete

logger = logging.getLogger(__name__)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used."""


class Checkpoint:
    """`resume.safetensors` beside a stage's outputs: written atomically, deleted when a run is done.

    One that another run wrote is set aside under a name of its own: hours of training may be behind it, and a
    setting that was changed by mistake can be changed back.
    """

    def __init__(
        self, folder: Path, key: object, every_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = folder / "resume.safetensors"
        self._key = json.dumps(key, sort_keys=True)
        self._every_seconds = every_seconds
        self._clock = clock
        self._saved = self._asked = clock()
        self._told_to_end = False

    @contextmanager
    def saving_on_sigterm(self) -> Iterator[None]:
        """Let SIGTERM, what a queue sends some time before it kills, end training with the step it is in.

        That step is saved, and the process ends with status EX_TEMPFAIL (75): to be tried again.
        """
        before = signal.signal(signal.SIGTERM, self._end_soon)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _end_soon(self, *_: object) -> None:
        self._told_to_end = True

    def load(self) -> tuple[dict[str, Tensor], dict] | None:
        """Tensors and progress of the interrupted run, None if there is none."""
        self._make_way()
        if not self.path.exists():
            return None
        with self._opened() as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            progress = (file.metadata() or {}).get("progress", "")
        try:
            return tensors, json.loads(progress)
        except ValueError:
            raise CheckpointError(
                f"{self.path} does not say how far it is: delete it to train from the start"
            ) from None

    def _make_way(self) -> None:
        """Set the checkpoint of another run aside, and take up again what an earlier change set aside."""
        if self.path.exists():
            with self._opened() as file:
                key = (file.metadata() or {}).get("key", "")
            if key == self._key:
                return
            aside = self._aside(key)
            self.path.replace(aside)
            logger.warning(
                "%s belongs to other settings, code, data or hardware: set aside as %s, until they are back",
                self.path,
                aside.name,
            )
        if (mine := self._aside(self._key)).exists():
            mine.replace(self.path)
            logger.warning("these settings are back, and so is %s", self.path)

    def _aside(self, key: str) -> Path:
        return self.path.with_stem(f"resume-{hashlib.sha256(key.encode()).hexdigest()[:12]}")

    @contextmanager
    def _opened(self) -> Iterator[safe_open]:
        try:
            with safe_open(self.path, "pt") as file:
                yield file
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{self.path} is damaged ({error}): delete it to train from the start"
            ) from None

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Name the file, should putting back what it holds fail: its key is ours, its content is not."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.path} does not hold what this training has saved: delete it to train from the start"
            ) from error

    def due(self) -> bool:
        """Whether one more step as long as the last would put more time at risk than may be lost."""
        now = self._clock()
        step, self._asked = now - self._asked, now
        return self._told_to_end or now - self._saved + step >= self._every_seconds

    def save(self, tensors: dict[str, Tensor], progress: dict) -> None:
        """Replace the checkpoint by a newer one; the last one of a process that was told to end."""
        metadata = {"key": self._key, "progress": json.dumps(progress)}
        with complete(self.path) as temporary:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata)
        self._saved = self._clock()
        if self._told_to_end:
            logger.warning("ended by SIGTERM; %s is saved, the same command goes on from there", self.path)
            raise SystemExit(os.EX_TEMPFAIL)


def collect(**parts: nn.Module | torch.optim.Optimizer) -> dict[str, Tensor]:
    """All tensors of networks and optimizers, by name."""
    tensors = {}
    for name, part in parts.items():
        if isinstance(part, nn.Module):
            tensors |= {f"{name}/{key}": value for key, value in part.state_dict().items()}
        else:
            for index, state in part.state_dict()["state"].items():
                tensors |= {f"{name}/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    return tensors


def restore(tensors: dict[str, Tensor], **parts: nn.Module | torch.optim.Optimizer) -> None:
    """Put tensors that `collect` gathered back in place, or raise what PyTorch does if they do not fit."""
    for name, part in parts.items():
        mine = {
            key.removeprefix(f"{name}/"): value
            for key, value in tensors.items()
            if key.startswith(f"{name}/")
        }
        if isinstance(part, nn.Module):
            part.load_state_dict(mine)
        else:
            state: dict[int, dict[str, Tensor]] = {}
            for key, value in mine.items():
                index, field = key.split("/")
                state.setdefault(int(index), {})[field] = value
            _check_moments(state, part)
            part.load_state_dict(part.state_dict() | {"state": state})


def _check_moments(state: dict[int, dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> None:
    """An optimizer takes moments of any size, and fails only with the next update."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for index, moments in state.items():
        if index >= len(parameters):
            raise ValueError(f"moments of parameter {index} of {len(parameters)}")
        for field, value in moments.items():
            if value.dim() and value.shape != parameters[index].shape:
                raise ValueError(f"{field} of parameter {index} has shape {tuple(value.shape)}")
