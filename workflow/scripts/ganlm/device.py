"""Where tensors live."""

import torch


def choose_device(wanted: str = "auto") -> torch.device:
    """The device of that name; `auto` is the GPU if this job was given one and there is one, else the CPU.

    Slurm and friends hide GPUs that a job did not ask for, so what is visible is what was given.
    """
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ValueError("the config asks for `device: cuda`, but this job sees no GPU: use `auto` or `cpu`")
    return torch.device("cuda" if there and wanted != "cpu" else "cpu")
