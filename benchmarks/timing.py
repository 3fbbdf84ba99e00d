"""Wall time of things that take turns, and peak memory of a function in a process of its own."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """What a function took in a process of its own, start-up and imports included in the memory only."""

    seconds: float
    megabytes: float


def best_seconds(functions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The shortest of `repeats` runs of each function, in turns, so that a busy spell hits them all.

    The first turn only warms up: it fills caches and builds tables.
    """
    turns = [[_seconds(function) for function in functions] for _ in range(repeats + 1)]
    return [min(column) for column in zip(*turns[1:], strict=True)]


def isolated(function: Callable[..., object], *arguments: object) -> Usage:
    """Run a function of a module in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_usage, function, arguments).result()


def _usage(function: Callable[..., object], arguments: Sequence[object]) -> Usage:
    seconds = _seconds(lambda: function(*arguments))
    return Usage(seconds, _peak_megabytes())


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _peak_megabytes() -> float:
    """Peak resident memory; on Linux from /proc, since getrusage also counts the parent before `exec`."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
