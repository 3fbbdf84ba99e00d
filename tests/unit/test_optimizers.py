import math

import pytest
import torch

from ganlm.training.optimizers import TensorFlowAdam

RATE, BETA1, BETA2, EPSILON = 0.01, 0.9, 0.999, 1e-8


def by_hand(start: float, gradients: list[float]) -> list[float]:
    """What the documentation of TensorFlow's `AdamOptimizer` says it computes."""
    value, m, v, found = start, 0.0, 0.0, []
    for t, gradient in enumerate(gradients, start=1):
        rate = RATE * math.sqrt(1 - BETA2**t) / (1 - BETA1**t)
        m = BETA1 * m + (1 - BETA1) * gradient
        v = BETA2 * v + (1 - BETA2) * gradient * gradient
        value -= rate * m / (math.sqrt(v) + EPSILON)
        found.append(value)
    return found


def steps(optimizer: type[torch.optim.Adam], gradients: list[float]) -> list[float]:
    parameter = torch.nn.Parameter(torch.tensor([0.5], dtype=torch.float64))
    adam, found = optimizer([parameter], lr=RATE), []
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        adam.step()
        found.append(parameter.item())
    return found


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-9])
def test_every_step_is_that_of_tensorflow(scale):
    gradients = [scale * g for g in (1.0, -0.3, 0.7, 0.0, 2.0, 1.1)]
    moved = [value - 0.5 for value in steps(TensorFlowAdam, gradients)]
    assert moved == pytest.approx([value - 0.5 for value in by_hand(0.5, gradients)], rel=1e-9)


def test_it_differs_where_gradients_are_about_epsilon_and_nowhere_else():
    """The first step of a gradient g is η g / (g + 31.6 ε) instead of η g / (g + ε)."""
    first = {
        (optimizer, scale): 0.5 - steps(optimizer, [scale])[0]
        for optimizer in (TensorFlowAdam, torch.optim.Adam)
        for scale in (1.0, 1e-9)
    }
    assert first[TensorFlowAdam, 1.0] == pytest.approx(first[torch.optim.Adam, 1.0], rel=1e-6)
    assert first[TensorFlowAdam, 1e-9] == pytest.approx(RATE * 0.1 / (0.1 + math.sqrt(1000)), rel=1e-6)
    assert first[torch.optim.Adam, 1e-9] == pytest.approx(RATE * 0.1 / 1.1, rel=1e-6)


def test_moments_put_into_another_one_go_on_alike():
    gradients = [1e-9, -3e-9, 2e-9, 1e-9]
    parameter = torch.nn.Parameter(torch.tensor([0.5], dtype=torch.float64))
    adam = TensorFlowAdam([parameter], lr=RATE)
    for gradient in gradients:
        fresh = TensorFlowAdam([parameter], lr=RATE)
        fresh.load_state_dict(fresh.state_dict() | {"state": adam.state_dict()["state"]})
        adam = fresh
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        adam.step()
    assert parameter.item() == steps(TensorFlowAdam, gradients)[-1]
