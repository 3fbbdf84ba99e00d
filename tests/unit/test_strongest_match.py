import pytest
import torch
from torch import Tensor

from ganlm.models.strongest_match import Readers, StrongestMatch

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
    found, expected = (
        StrongestMatch.apply(tokens, (widths,), ours).view_as(weights),
        naive(theirs, tokens, widths),
    )
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert (ours.grad[-1] == 0).all()


def test_the_gradient_is_that_of_finite_differences():
    torch.manual_seed(1)
    tokens = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    table = torch.randn(VOCABULARY, 7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: StrongestMatch.apply(tokens, ((1, 2, 4),), t), table)


def test_a_window_reads_a_token_at_the_offset_of_a_line():
    """Two sequences of three: windows 0 to 3 are of two tokens, 4 to 9 of one; there is no window 10."""
    readers = Readers.of((2, 1), 2, 3, torch.device("cpu"))
    assert readers.windows == 10
    assert readers.first[:, :, 0].tolist() == [[0, 4], [2, 7]]
    assert readers.of_token.tolist() == [
        [0, 1, 10, 2, 3, 10],
        [10, 0, 1, 10, 2, 3],
        [4, 5, 6, 7, 8, 9],
    ]


def test_several_tables_are_several_calls():
    torch.manual_seed(1)
    tokens, widths = torch.randint(VOCABULARY, (5, 6)), ((1, 3), (2,), (6, 4, 5))
    tables = [torch.randn(VOCABULARY, sum(its), n, requires_grad=True) for n, its in enumerate(widths, 2)]
    together = StrongestMatch.apply(tokens, widths, *tables)
    apart = [StrongestMatch.apply(tokens, (its,), table) for its, table in zip(widths, tables, strict=True)]
    assert torch.equal(together, torch.cat(apart, dim=1))
    weights = torch.randn_like(together)
    gradients = torch.autograd.grad((together * weights).sum(), tables)
    for found, expected in zip(
        gradients, torch.autograd.grad((torch.cat(apart, dim=1) * weights).sum(), tables), strict=True
    ):
        assert torch.equal(found, expected)
