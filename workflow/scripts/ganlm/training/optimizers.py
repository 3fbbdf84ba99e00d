"""Adam as TensorFlow 1 has it, for training that follows the published code to the letter."""

import math

import torch

EPSILON = 1e-8


class TensorFlowAdam(torch.optim.Adam):
    """Adam whose ε is added before the bias of the second moment is corrected.

    θ ← θ − η √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε), which Kingma and Ba (2015) give at the end of their
    section 2. PyTorch corrects v first; the same ε is ε / √(1 − β₂ᵗ) there, 32 times as much in the first
    step and ten times in the tenth. It matters for gradients around ε only: rewards that are all but zero.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """With the ε of this step, which follows from how many there were: a checkpoint need not hold it."""
        taken = max((int(state["step"]) for state in self.state.values()), default=0)
        for group in self.param_groups:
            group["eps"] = EPSILON / math.sqrt(1 - group["betas"][1] ** (taken + 1))
        super().step(closure)
