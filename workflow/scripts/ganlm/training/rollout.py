"""Sampling from the generator, and the roll-out rewards of SeqGAN, all prefixes and repeats in one batch.

The reward of token t is what the discriminator thinks, on average, of completions of the first t tokens. The
states of all prefixes are computed once; completions that started earlier are advanced together with those
that start now, so a batch takes T steps instead of one full generation per prefix and repeat.
"""

import torch
from torch import Tensor

from ganlm.models.discriminator import Discriminator
from ganlm.models.lstm import START, LanguageModel

# A CPU is fastest while the states of a batch stay in its cache, a GPU the more rows it gets.
ROWS_AT_ONCE = {"cpu": 1024, "cuda": 65536}

State = tuple[Tensor, Tensor]


def draw(logits: Tensor, random: torch.Generator) -> Tensor:
    """One token per row from its softmax, by the race of exponential clocks."""
    clocks = torch.empty_like(logits, dtype=torch.float32).exponential_(generator=random)
    return (logits.float().softmax(dim=-1) / clocks).argmax(dim=-1)


@torch.no_grad()
def sample(network: LanguageModel, rows: int, length: int, random: torch.Generator) -> Tensor:
    """Sequences of shape (rows, length); dropout acts if the network is in training mode."""
    at_once = ROWS_AT_ONCE[random.device.type]
    pieces = [min(at_once, rows - start) for start in range(0, rows, at_once)]
    return torch.cat([_sample(network, piece, length, random) for piece in pieces])


def _sample(network: LanguageModel, rows: int, length: int, random: torch.Generator) -> Tensor:
    token = torch.full((rows, 1), START, device=random.device)
    tokens, state = [], None
    for _ in range(length):
        logits, state = network(token, state)
        token = draw(logits[:, 0], random)[:, None]
        tokens.append(token)
    return torch.cat(tokens, dim=1)


@torch.no_grad()
def rewards(
    policy: LanguageModel,
    discriminator: Discriminator,
    samples: Tensor,
    repeats: int,
    random: torch.Generator,
) -> Tensor:
    """Reward of every token of `samples`, shape (rows, length), averaged over `repeats` completions."""
    at_once = ROWS_AT_ONCE[random.device.type]
    rows = max(1, at_once // (repeats * max(1, samples.shape[1] - 1)))
    means = []
    for some in samples.split(rows):
        completed = completions(policy, some, repeats, random)
        scores = [discriminator.real(part) for part in completed.flatten(0, 2).split(at_once)]
        means.append(torch.cat(scores).view(completed.shape[:3]).mean(dim=1).T)
    return torch.cat([torch.cat(means), discriminator.real(samples)[:, None]], dim=1)


def completions(policy: LanguageModel, samples: Tensor, repeats: int, random: torch.Generator) -> Tensor:
    """For prefixes of 1..T-1 tokens, sampled completions: shape (T - 1, repeats, rows, T)."""
    rows, length = samples.shape
    completed = samples.expand(length - 1, repeats, rows, length).clone()
    prefixes = _prefix_states(policy, samples)
    logits, state = None, None
    for position in range(1, length):
        new_logits, new_state = prefixes[position]
        logits = _extended(logits, new_logits, repeats)
        token = draw(logits, random)
        completed[:position, :, :, position] = token.view(position, repeats, rows)
        if position < length - 1:
            old = state or (None, None)
            state = tuple(_extended(a, b, repeats, dim=1) for a, b in zip(old, new_state, strict=True))
            logits, state = policy(token[:, None], state)
            logits = logits[:, 0]
    return completed


def _extended(old: Tensor | None, new: Tensor, repeats: int, dim: int = 0) -> Tensor:
    """Rows of the prefix that starts now, repeated, after those of shorter prefixes."""
    repeated = torch.cat([new] * repeats, dim=dim)
    return repeated if old is None else torch.cat([old, repeated], dim=dim)


def _prefix_states(policy: LanguageModel, samples: Tensor) -> list[tuple[Tensor, State]]:
    """After the start token and each prefix of `samples`: logits of the next token, and the state."""
    token, state, found = torch.full_like(samples[:, :1], START), None, []
    for position in range(samples.shape[1]):
        logits, state = policy(token, state)
        found.append((logits[:, 0], state))
        token = samples[:, position : position + 1]
    return found
