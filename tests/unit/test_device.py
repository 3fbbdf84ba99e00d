import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ganlm import device
from ganlm.device import choose_device, choose_precision, settled

CPU = torch.device("cpu")
SCRIPTS = Path(device.__file__).parents[1]


def test_the_cpu_can_be_asked_for():
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_the_choice_is_the_cpu_and_asking_for_one_gets_a_sentence():
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match="asks for `device: cuda`, but this job sees no GPU"):
        choose_device("cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
def test_a_gpu_is_taken():
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_a_precision_can_be_asked_for(wanted):
    assert choose_precision(wanted, CPU) == wanted


@pytest.mark.parametrize(
    ("instructions", "chosen"),
    [
        ({"avx2": True, "avx512_f": True}, "float32"),
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, "float32"),
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True, "amx_tile": True}, "bfloat16"),
        ({"neon": True, "bf16": True}, "bfloat16"),
        ({"neon": True, "bf16": False}, "float32"),
    ],
)
def test_bfloat16_is_chosen_where_the_processor_has_instructions_for_it(monkeypatch, instructions, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)
    assert choose_precision("auto", CPU) == chosen
    training = {"precision": "auto", "batch": 64}
    assert settled(training, CPU) == {"precision": chosen, "batch": 64}
    assert training["precision"] == "auto"


def seconds_of_a_product(precision: str) -> float:
    """The best of some, so that what else the machine does counts little."""
    matrix = torch.randn(768, 768).to(getattr(torch, precision))
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - begin)
    return min(times)


def test_the_chosen_precision_is_the_faster_one_on_this_machine():
    seconds = {precision: seconds_of_a_product(precision) for precision in ("float32", "bfloat16")}
    other = {"float32": "bfloat16", "bfloat16": "float32"}[choose_precision("auto", CPU)]
    assert seconds[choose_precision("auto", CPU)] < seconds[other]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="torch keeps denormals there")
@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_below_the_normal_range_are_zero_in_every_thread(threads):
    """In a process of its own: this one has started its threads, and wants its denormals."""
    program = f"""
import torch
from ganlm.device import use_threads
use_threads({threads})
assert torch.get_num_threads() == {threads}
tiny = torch.from_numpy(__import__("numpy").full(4_000_000, 1e-40, dtype="float32"))
print((tiny * 0.5).view(torch.int32).count_nonzero().item())
"""
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=SCRIPTS, capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "0"
