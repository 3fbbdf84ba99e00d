"""What all ways of training do when they went wrong."""

import math


class DivergenceError(ValueError):
    """Training went wrong in a way that more of it does not mend."""


def check_finite(record: dict[str, float], where: str, kept: str) -> None:
    """One sentence about the first value that is no number: where it was, what to do, what is kept."""
    for name, value in record.items():
        if not math.isfinite(value):
            raise DivergenceError(
                f"{name} became {value} in {where}: lower the learning rates or use float32; {kept}"
            )
