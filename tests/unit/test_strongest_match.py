import pytest
import torch
from torch import Tensor

from ganlm.models.strongest_match import StrongestMatch, Windows

VOCABULARY = 3


def naive(table: Tensor, tokens: Tensor, widths: tuple[int, ...]) -> Tensor:
    """One match at a time."""
    found, line = [], 0
    for width in widths:
        matches = [
            sum(table[tokens[:, start + j], line + j] for j in range(width))
            for start in range(tokens.shape[1] - width + 1)
        ]
        found.append(torch.stack(matches).amax(dim=0))
        line += width
    return torch.stack(found, dim=1)


@pytest.mark.parametrize(("widths", "length"), [((1,), 1), ((1, 4), 6), ((3, 2), 6), ((6, 1, 6), 6)])
def test_matches_and_gradients_are_those_of_one_match_at_a_time(widths, length):
    """Three tokens in six places: there are equal windows, absent tokens and unread rows."""
    torch.manual_seed(1)
    tokens = torch.randint(VOCABULARY - 1, (5, length))
    table = torch.randn(VOCABULARY, sum(widths), 4, dtype=torch.float64)
    ours, theirs = (table.clone().requires_grad_() for _ in range(2))
    weights = torch.randn(5, len(widths), 4, dtype=torch.float64)
    found, expected = StrongestMatch.apply(ours, tokens, widths), naive(theirs, tokens, widths)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert (ours.grad[-1] == 0).all()


def test_the_gradient_is_that_of_finite_differences():
    torch.manual_seed(1)
    tokens = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    table = torch.randn(VOCABULARY, 7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: StrongestMatch.apply(t, tokens, (1, 2, 4)), table)


def test_a_row_is_read_by_the_windows_that_start_where_its_offset_says():
    """Sequence 0 1 0: windows 0 and 1 are 01 and 10, windows 2 to 4 are of one token."""
    read_by, first = Windows.of((2, 1), 3, torch.device("cpu")).readers(torch.tensor([[0, 1, 0]]), VOCABULARY)
    bags = [part[part < 5].tolist() for part in read_by.tensor_split(first[1:])]
    assert bags == [[0], [1], [], [1], [0], [], [2, 4], [3], []]
