import pytest
import torch
from torch import Tensor

from ganlm.models.strongest_match import StrongestMatches, _Occurrences

VOCABULARY = 3


def naive(table: Tensor, tokens: Tensor, width: int) -> Tensor:
    """One match at a time."""
    matches = [
        sum(table[j * VOCABULARY + tokens[:, start + j]] for j in range(width))
        for start in range(tokens.shape[1] - width + 1)
    ]
    return torch.stack(matches).amax(dim=0)


@pytest.mark.parametrize(("width", "length"), [(1, 1), (1, 6), (3, 6), (6, 6)])
def test_matches_and_gradients_are_those_of_one_match_at_a_time(width, length):
    """Three tokens in six places: there are equal windows, absent tokens and unread rows."""
    torch.manual_seed(1)
    tokens = torch.randint(VOCABULARY - 1, (5, length))
    table = torch.randn(width * VOCABULARY, 4, dtype=torch.float64)
    ours, theirs = (table.clone().requires_grad_() for _ in range(2))
    weights = torch.randn(5, 4, dtype=torch.float64)
    found, expected = StrongestMatches.apply(tokens, VOCABULARY, ours), naive(theirs, tokens, width)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert (ours.grad.view(width, VOCABULARY, 4)[:, -1] == 0).all()


def test_the_gradients_of_several_widths_are_those_of_finite_differences():
    torch.manual_seed(1)
    tokens = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    tables = [
        torch.randn(width * VOCABULARY, filters, dtype=torch.float64, requires_grad=True)
        for width, filters in ((1, 2), (2, 3), (4, 1))
    ]
    assert torch.autograd.gradcheck(lambda *t: StrongestMatches.apply(tokens, VOCABULARY, *t), tables)


def test_a_row_is_read_by_the_matches_that_start_where_its_offset_says():
    """Sequence 0 1 0 with windows of two tokens: 01 and 10."""
    read_by, first = _Occurrences.of(torch.tensor([[0, 1, 0]]), VOCABULARY).readers(2, 2, none=2)
    bags = [part[part < 2].tolist() for part in read_by.tensor_split(first[1:])]
    assert bags == [[0], [1], [], [1], [0], []]
