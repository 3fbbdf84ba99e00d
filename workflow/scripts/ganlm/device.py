"""Where networks are trained: threads, device, precision."""

import torch

# What x86 and Arm processors call the instructions that multiply in bfloat16.
BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")


def use_threads(count: int) -> None:
    """Compute with so many threads, and take numbers below the normal range for zero.

    A processor may need a hundred times as long for these, and a discriminator that is sure of its verdict
    has moments full of them. Threads start with what holds when they start, so call this first.
    """
    torch.set_flush_denormal(True)
    torch.set_num_threads(count)


def choose_device(wanted: str = "auto") -> torch.device:
    """The device of that name; `auto` is the GPU if this job was given one and there is one, else the CPU.

    Slurm and friends hide GPUs that a job did not ask for, so what is visible is what was given.
    """
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ValueError("the config asks for `device: cuda`, but this job sees no GPU: use `auto` or `cpu`")
    return torch.device("cuda" if there and wanted != "cpu" else "cpu")


def choose_precision(wanted: str, device: torch.device) -> str:
    """The precision of that name; `auto` is bfloat16 where the device has instructions for it, else float32.

    Emulated, products in bfloat16 take several times as long as those in float32.
    """
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        found = torch.cpu.get_capabilities()
        native = any(found.get(name, False) for name in BFLOAT16_INSTRUCTIONS)
    return "bfloat16" if native else "float32"


def arithmetic(precision: str, device: torch.device) -> str:
    """What numbers depend on beside settings: work that is half done can go on where this is the same."""
    return f"{precision} on {device.type}"


def settled(training: dict, device: torch.device) -> dict:
    """Hyper-parameters of a training, with the precision that `auto` comes to."""
    return training | {"precision": choose_precision(training["precision"], device)}
