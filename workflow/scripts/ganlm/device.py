"""Where tensors live."""

import torch


def choose_device() -> torch.device:
    """The GPU if this job was given one and there is one, else the CPU.

    Slurm and friends hide GPUs that a job did not ask for, so what is visible is what was given.
    """
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
