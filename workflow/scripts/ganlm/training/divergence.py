"""What all ways of training do when they went wrong."""

import math

from torch import Tensor


class DivergenceError(ValueError):
    """Training went wrong in a way that more of it does not mend."""


def check_finite(record: dict[str, float], where: str, kept: str) -> None:
    """One sentence about the first value that is no number: where it was, what to do, what is kept."""
    for name, value in record.items():
        if not math.isfinite(value):
            raise _error(f"{name} became {value} in {where}", kept)


def check_finite_tensors(tensors: dict[str, Tensor], where: str, kept: str) -> None:
    """The same of weights and moments: the last update of a step may spoil them and no loss shows it."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise _error(f"{name} is no longer finite after {where}", kept)


def _error(what: str, kept: str) -> DivergenceError:
    return DivergenceError(f"{what}: lower the learning rates or use float32; {kept}")
