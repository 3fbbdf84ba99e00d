import math

import pytest
import torch
from torch.nn.functional import dropout as reference

from ganlm.models.dropout import LEVELS, Dropout, random_levels

CPU = torch.device("cpu")


def dropped(share: float, x: torch.Tensor, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(share).train()(x)


@pytest.mark.parametrize("share", [0.001, 0.25, 0.5, 0.9])
def test_the_share_that_is_dropped_is_the_one_asked_for(share):
    n = 4_000_000
    zeros = (dropped(share, torch.ones(n)) == 0).sum().item()
    assert abs(zeros - share * n) < 5 * math.sqrt(n * share * (1 - share)) + n / LEVELS


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_kept_is_what_the_library_keeps_of_it(dtype):
    x = torch.randn(50, 40, dtype=dtype)
    ours, theirs = dropped(0.25, x), reference(x, 0.25)
    both = (ours != 0) & (theirs != 0)
    assert ours.dtype == dtype
    assert 0.4 < both.float().mean() < 0.75
    torch.testing.assert_close(
        ours[both], theirs[both], rtol=2**-7 if dtype == torch.bfloat16 else 1e-6, atol=0
    )


def test_elements_that_share_a_random_number_are_independent():
    """Four come from one number of 64 bits; sixteen patterns of four coins are equally likely."""
    kept = dropped(0.5, torch.ones(400_000)).view(-1, 4) != 0
    patterns = (kept * torch.tensor([1, 2, 4, 8])).sum(dim=1).bincount(minlength=16)
    expected = kept.shape[0] / 16
    assert ((patterns - expected) ** 2 / expected).sum() < 45  # chi-square, 15 degrees: p < 1e-4


def test_levels_are_uniform_from_end_to_end():
    levels = random_levels(4_000_001, CPU)
    assert (len(levels), levels.min().item(), levels.max().item()) == (
        4_000_001,
        -LEVELS // 2,
        LEVELS // 2 - 1,
    )
    counts = (levels.int() + LEVELS // 2).div(LEVELS // 64, rounding_mode="floor").bincount()
    expected = len(levels) / 64
    assert ((counts - expected) ** 2 / expected).sum() < 120  # 63 degrees: p < 1e-4


def test_the_gradient_is_the_mask():
    x = torch.randn(7, 5, requires_grad=True)
    y = dropped(0.25, x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach() / x.detach())


def test_a_transposed_input_is_dropped_as_its_copy_is():
    x = torch.randn(6, 8).T
    assert torch.equal(dropped(0.5, x), dropped(0.5, x.contiguous()))


def test_the_seed_decides():
    x = torch.ones(1000)
    assert torch.equal(dropped(0.5, x), dropped(0.5, x))
    assert not torch.equal(dropped(0.5, x), dropped(0.5, x, seed=2))


@pytest.mark.parametrize("layer", [Dropout(0.5).eval(), Dropout(0.0).train()])
def test_where_nothing_is_dropped_nothing_is_drawn(layer):
    x, before = torch.randn(10), torch.get_rng_state()
    assert layer(x) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_next_to_everything_dropped_is_not_a_division_by_zero():
    assert dropped(0.999_999, torch.ones(1000)).isfinite().all()
