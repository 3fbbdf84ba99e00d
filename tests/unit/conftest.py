"""What all tests of the library share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).parents[2] / "workflow/scripts"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small networks are fastest so, and sums have one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen]]:
    """Start Python programs that are gone when the test is."""
    children = []

    def start(program: str, *arguments: Path | str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(process)
        return process

    yield start
    for process in children:
        process.kill()
        process.communicate()
