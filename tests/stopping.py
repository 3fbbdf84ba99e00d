"""Adversarial training that stops where a test wants it to."""

import math
from pathlib import Path

from torch import Tensor

from ganlm.training.adversarial import Loop
from ganlm.training.checkpoint import Checkpoint


def run(folder: Path, it: Loop, seconds: float = math.inf) -> Loop:
    """To the end, from the checkpoint in the folder if there is one."""
    folder.mkdir(exist_ok=True)
    it.run(Checkpoint(folder, "key", seconds))
    return it


class StopError(Exception):
    """Raised by `Stopping`."""


class Stopping(Checkpoint):
    """Ends the run right after it has saved a step."""

    def __init__(self, folder: Path, stop_after: int) -> None:
        super().__init__(folder, "key", 0)
        self._stop_after = stop_after

    def save(self, tensors: dict[str, Tensor], progress: dict) -> None:
        """Save, and stop."""
        super().save(tensors, progress)
        if progress["step"] == self._stop_after:
            raise StopError
