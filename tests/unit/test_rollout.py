import itertools
from collections.abc import Callable

import pytest
import torch
from scipy import stats
from torch import Tensor

from ganlm.models.discriminator import Discriminator
from ganlm.models.lstm import START, Architecture, LanguageModel, shifted
from ganlm.training import rollout
from ganlm.training.rollout import completions, draw, rewards, sample

VOCABULARY = 3
LENGTH = 4
ALL = torch.tensor(list(itertools.product(range(VOCABULARY), repeat=LENGTH)))


class Opinion:
    """A discriminator whose verdict is any function of the tokens."""

    def __init__(self, verdict: Callable[[Tensor], Tensor]) -> None:
        self.real = verdict


def generator(vocabulary=VOCABULARY, scale=10.0, layers=1, dropout=0.0, seed=1) -> LanguageModel:
    """Weights so large that what was read matters to what comes next."""
    torch.manual_seed(seed)
    network = LanguageModel(vocabulary, Architecture(4, 8, layers, dropout)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return network


def deterministic(vocabulary: int, layers: int = 1, dropout: float = 0.0) -> LanguageModel:
    """The softmax is one-hot."""
    network = generator(vocabulary, layers=layers, dropout=dropout)
    with torch.no_grad():
        network.output.weight.mul_(1e4)
        network.output.bias.mul_(1e4)
    return network


def clocks(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens(rows: int, length: int, vocabulary: int, seed: int = 3) -> Tensor:
    return torch.randint(vocabulary, (rows, length), generator=clocks(seed))


@torch.no_grad()
def regenerated(policy: LanguageModel, prefix: Tensor, length: int, random: torch.Generator) -> Tensor:
    """The published way: read the prefix from the start, go on token by token."""
    found = prefix
    while found.shape[1] < length:
        read = torch.cat([torch.full_like(prefix[:, :1], START), found], dim=1)
        probabilities = policy(read)[0][:, -1].softmax(dim=-1)
        found = torch.cat([found, torch.multinomial(probabilities, 1, generator=random)], dim=1)
    return found


@torch.no_grad()
def naive(policy, discriminator, samples: Tensor, repeats: int, random: torch.Generator) -> Tensor:
    """One full generation per prefix and repeat."""
    length, columns = samples.shape[1], []
    for given in range(1, length):
        scores = [
            discriminator.real(regenerated(policy, samples[:, :given], length, random))
            for _ in range(repeats)
        ]
        columns.append(torch.stack(scores).mean(dim=0))
    return torch.stack([*columns, discriminator.real(samples)], dim=1)


@torch.no_grad()
def log_probabilities(policy: LanguageModel) -> Tensor:
    """Of each token of all sequences there are."""
    logits, _ = policy(shifted(ALL))
    return logits.log_softmax(dim=-1).gather(-1, ALL[:, :, None])[:, :, 0]


def verdict(sequences: Tensor) -> Tensor:
    """A number between 0 and 1 that every token changes, each in its own way."""
    weights = torch.tensor([0.05, 0.11, 0.23, 0.09])
    return (sequences.float() @ weights + 0.3 * (sequences[:, 0] == sequences[:, 3])).clamp(0, 1)


@pytest.mark.parametrize("layers", [1, 2])
def test_rewards_of_a_deterministic_generator_are_the_naive_ones(layers):
    torch.manual_seed(5)
    discriminator = Discriminator(9, 12).eval()
    policy, samples = deterministic(9, layers), tokens(6, 12, 9)
    found = rewards(policy, discriminator, samples, 3, clocks())
    expected = naive(policy, discriminator, samples, 2, clocks(2))
    assert expected.std(dim=0).min() > 1e-3, "rows that do not differ would prove nothing"
    assert expected.std(dim=1).min() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_rewards_are_the_exact_expectations_over_all_completions():
    """Q(prefix) = Σ p(rest | prefix) D(prefix + rest) over all 3^4 sequences; 4 standard errors."""
    policy, samples, repeats = generator(), ALL[::10], 4000
    score, log_p = verdict(ALL), log_probabilities(policy)
    found = rewards(policy, Opinion(verdict), samples, repeats, clocks())
    for row, given in itertools.product(range(len(samples)), range(1, LENGTH)):
        match = (ALL[:, :given] == samples[row, :given]).all(dim=1)
        p = log_p[match, given:].sum(dim=1).exp()
        assert p.sum().item() == pytest.approx(1, abs=1e-5)
        mean = (p * score[match]).sum()
        variance = (p * (score[match] - mean) ** 2).sum()
        error = (found[row, given - 1] - mean).abs().item()
        assert error < 4 * (variance / repeats).sqrt().item() + 1e-6, (row, given)


def test_rewards_of_a_stochastic_generator_are_distributed_as_the_naive_ones():
    policy, samples, repeats = generator(), ALL[[5, 40, 77]], 1000
    opinion = Opinion(verdict)
    batched = torch.stack([rewards(policy, opinion, samples, 1, clocks(seed)) for seed in range(repeats)])
    slow = torch.stack([naive(policy, opinion, samples, 1, clocks(-seed)) for seed in range(1, 1 + repeats)])
    for power in (1, 2):
        one, other = batched**power, slow**power
        error = ((one.var(dim=0) + other.var(dim=0)) / repeats).sqrt()
        assert error[:, :2].min() > 1e-3
        assert ((one.mean(dim=0) - other.mean(dim=0)).abs() <= 4 * error + 1e-6).all()


def test_repeats_are_independent():
    """Rewards averaged over 25 completions spread a fifth as much as single ones."""
    policy, samples = generator(), ALL[40:41]
    spread = {
        repeats: torch.stack(
            [rewards(policy, Opinion(verdict), samples, repeats, clocks(seed))[0, 0] for seed in range(400)]
        )
        .std()
        .item()
        for repeats in (1, 25)
    }
    assert spread[25] == pytest.approx(spread[1] / 5, rel=0.2)


@pytest.mark.parametrize(("rows", "length", "repeats"), [(5, 7, 3), (1, 2, 1), (2, 3, 4), (3, 9, 1)])
def test_prefixes_are_kept_verbatim(rows, length, repeats):
    samples = tokens(rows, length, 9)
    before = samples.clone()
    found = completions(generator(9, scale=1), samples, repeats, clocks())
    assert found.shape == (length - 1, repeats, rows, length)
    assert found.dtype == samples.dtype
    assert found.min() >= 0
    assert found.max() < 9
    for given in range(1, length):
        assert (found[given - 1, :, :, :given] == samples[:, :given]).all()
    assert torch.equal(samples, before)


def test_completions_differ_from_the_samples_right_after_the_prefix():
    """Every token after the prefix is drawn: a uniform generator of 1000 tokens never repeats the sample."""
    samples = tokens(4, 6, 1000)
    found = completions(generator(1000, scale=0), samples, 5, clocks())
    for given in range(1, 6):
        assert (found[given - 1, :, :, given:] == samples[:, given:]).float().mean() < 0.1


@pytest.mark.parametrize("position", range(6))
def test_rewards_are_not_scrambled_across_sequences_or_positions(position):
    """A verdict on one position is known as soon as the prefix contains it, and uncertain before."""
    samples = torch.arange(5 * 6).reshape(5, 6)
    policy = generator(30, scale=0)
    opinion = Opinion(lambda sequences: sequences[:, position] / 100)
    found = rewards(policy, opinion, samples, 2, clocks())
    assert found.shape == samples.shape
    known = found[:, position:]
    torch.testing.assert_close(known, (samples[:, position : position + 1] / 100).expand_as(known))
    assert not (found[:, :position] == samples[:, position : position + 1] / 100).all(dim=0).any()


def test_the_last_column_scores_the_sequence_itself():
    torch.manual_seed(5)
    discriminator = Discriminator(9, 8).eval()
    samples = tokens(10, 8, 9)
    found = rewards(generator(9), discriminator, samples, 2, clocks())
    torch.testing.assert_close(found[:, -1], discriminator.real(samples).detach())


@pytest.mark.parametrize("at_once", [7, 15, 31])
def test_pieces_change_nothing(at_once, monkeypatch):
    """Of 5 sequences with 15 completions each: fewer rows than a sequence needs, one, two."""
    policy, samples = deterministic(9, 1), tokens(5, 6, 9)
    opinion = Opinion(lambda sequences: (sequences * torch.arange(1, 7)).sum(dim=1) / 200)
    whole = rewards(policy, opinion, samples, 3, clocks())
    drawn = sample(policy, 50, 6, clocks())
    monkeypatch.setitem(rollout.ROWS_AT_ONCE, "cpu", at_once)
    torch.testing.assert_close(rewards(policy, opinion, samples, 3, clocks()), whole)
    assert torch.equal(sample(policy, 50, 6, clocks()), drawn)


def test_rewards_carry_no_gradient():
    discriminator = Discriminator(9, 4)
    assert not rewards(generator(9), discriminator, tokens(2, 4, 9), 2, clocks()).requires_grad


def test_bfloat16_roll_outs_are_close_to_single_precision():
    torch.manual_seed(5)
    discriminator, policy, samples = Discriminator(9, 5).eval(), generator(9, scale=5), tokens(8, 5, 9)
    exact = rewards(policy, discriminator, samples, 400, clocks())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = rewards(policy, discriminator, samples, 400, clocks(2))
    assert rounded.dtype == torch.float32
    assert (exact - rounded).abs().max() < 0.1
    assert (exact - rounded).mean().abs() < 0.01


def test_draws_follow_the_softmax():
    logits = 2 * torch.randn(27, generator=clocks(7))
    counts = draw(logits.expand(300_000, -1), clocks()).bincount(minlength=27)
    expected = 300_000 * logits.double().softmax(dim=0)
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001


def test_rows_are_drawn_independently_each_from_its_own_logits():
    logits = torch.randn(2, 4, generator=clocks(7))
    rows = logits.repeat(100_000, 1)
    drawn = draw(rows, clocks()).view(-1, 2)
    counts = (drawn[:, 0] * 4 + drawn[:, 1]).bincount(minlength=16)
    p = logits.double().softmax(dim=1)
    expected = 100_000 * torch.outer(p[0], p[1]).flatten()
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001


def test_the_impossible_is_never_drawn():
    logits = torch.tensor([0.0, -torch.inf, 0.0, -1e9])
    assert set(draw(logits.expand(50_000, -1), clocks()).tolist()) == {0, 2}


def test_samples_are_distributed_as_the_model_says():
    """Chi-square over all 81 sequences."""
    policy, rows = generator(scale=6), 100_000
    p = log_probabilities(policy).sum(dim=1).exp().double().numpy()
    assert p.sum() == pytest.approx(1, abs=1e-5)
    found = sample(policy, rows, LENGTH, clocks())
    assert found.shape == (rows, LENGTH)
    assert found.dtype == torch.long
    codes = (found * VOCABULARY ** torch.arange(LENGTH - 1, -1, -1)).sum(dim=1)
    counts = codes.bincount(minlength=len(ALL)).numpy()
    assert p.min() * rows > 10
    assert stats.chisquare(counts, p / p.sum() * rows).pvalue > 0.001


def test_dropout_acts_while_sampling_only_in_training_mode():
    policy = deterministic(9, dropout=0.5)
    samples = {mode: sample(policy.train(mode), 50, 6, clocks()) for mode in (True, False)}
    assert len(samples[False].unique(dim=0)) == 1
    assert len(samples[True].unique(dim=0)) > 10


def test_equal_seeds_give_equal_roll_outs():
    policy, samples = generator(), ALL[:9]
    one, same, other = (completions(policy, samples, 4, clocks(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
