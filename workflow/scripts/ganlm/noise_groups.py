"""Noise draws in independent groups, each walked through the tree of all windows.

A group's draws read every prefix of the text once: one state per prefix for all draws of the group, whatever
the number of windows that begin with it. Draws are thus shared by all windows, and what they do wrong does
not average out with the text; how far apart the groups are tells by how much.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ganlm.generator import GeneratorError, Latent, checked_distributions
from ganlm.inverse_binomial import NEVER_HIT
from ganlm.prefix_tree import PrefixTree
from ganlm.randomness import keyed_rng, keyed_seed
from ganlm.splitmix import mixed, uniforms

GROUPS = 20
WALK_DRAWS = 1000
BATCH_CELLS = 1 << 18
RECORD = np.dtype(
    [
        ("p", "f8"),
        ("squares", "f8"),
        ("log_likelihood", "f8"),
        ("hits", "u4"),
        ("first_hit", "u4"),
        ("modes", "u4"),
        ("first_mode", "u4"),
    ]
)


class Answer(NamedTuple):
    """What draws say after a prefix: probabilities of the next token, and log-likelihoods of the prefix."""

    p: np.ndarray
    log_likelihood: np.ndarray


def group_sizes(draws: int) -> np.ndarray:
    """How many of the draws each group has: as equal as can be, and no group without a draw."""
    return _shares(draws, min(GROUPS, draws))


def walk_sizes(draws: int) -> np.ndarray:
    """How many draws of a group each of its walks has: at most WALK_DRAWS, to bound memory whatever N."""
    return _shares(draws, -(-draws // WALK_DRAWS))


def _shares(draws: int, parts: int) -> np.ndarray:
    return np.diff(np.arange(parts + 1) * draws // parts)


def walk(model: Latent, tree: PrefixTree, draws: int, rng: np.random.Generator) -> Iterator[Answer]:
    """The answers of `draws` noise draws at the inner nodes of the tree, depth-first.

    A state is kept only while it has children to come: at most one per branching of a path, however long.
    """
    pending: list[tuple[object, Answer]] = []
    tokens = tree.tokens[tree.inner].tolist()
    for token, branches, last in zip(tokens, tree.branches.tolist(), tree.last.tolist(), strict=True):
        if pending:
            state, above = pending.pop() if last else pending[-1]
            state = model.feed(state, token)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_likelihood = above.log_likelihood + np.log(above.p[:, token])
        else:
            state, log_likelihood = model.start(draws, rng), np.zeros(draws)
        p = np.asarray(model.predict(state))
        if p.shape != (draws, model.vocabulary):
            wanted = (draws, model.vocabulary)
            raise GeneratorError(f"the generator's `predict` answered shape {p.shape}, not {wanted}")
        answer = Answer(p, log_likelihood)
        if branches:
            pending.append((state, answer))
        yield answer


def group_records(
    model: Latent, tree: PrefixTree, draws: int, key: tuple, tick: Callable[[int], None]
) -> np.ndarray:
    """One RECORD per node: what a group of draws makes of its token; `tick` hears how many nodes are done.

    Sums over the draws of the token's probability and its square; how many draws sampled it, or have it as
    their most likely one, and which was the first; the log of the summed likelihoods of the node's prefix.
    One token is sampled per prefix and draw. Every walk of the group ticks all nodes once more.
    """
    nodes, (size, *more) = len(tree.inner), walk_sizes(draws).tolist()
    records, walked = _walk_records(model, tree, size, key, tick), size
    for number, size in enumerate(more, start=1):
        found = _walk_records(
            model, tree, size, (*key, number), lambda done, before=number * nodes: tick(before + done)
        )
        _merge(records, found, walked)
        walked += size
    return records


def _merge(records: np.ndarray, later: np.ndarray, walked: int) -> None:
    """Add to the records of the first `walked` draws of a group those of its next ones."""
    for name in ("first_hit", "first_mode"):
        follows = np.where(later[name] == NEVER_HIT, NEVER_HIT, later[name] + walked)
        records[name] = np.where(records[name] == NEVER_HIT, follows, records[name])
    for name in ("p", "squares", "hits", "modes"):
        records[name] += later[name]
    records["log_likelihood"] = np.logaddexp(records["log_likelihood"], later["log_likelihood"])


def _walk_records(
    model: Latent, tree: PrefixTree, draws: int, key: tuple, tick: Callable[[int], None]
) -> np.ndarray:
    """The records of draws that walk through the tree together."""
    records = np.zeros(len(tree.tokens), RECORD)
    size = max(1, BATCH_CELLS // (draws * model.vocabulary))
    p, log_likelihood = np.empty((size, draws, model.vocabulary)), np.empty((size, draws))
    keys = mixed(tree.keys[tree.inner] ^ np.uint64(keyed_seed(*key, "tokens") % 2**64))
    done = 0
    for at, answer in enumerate(walk(model, tree, draws, keyed_rng(*key, "noise"))):
        p[at - done], log_likelihood[at - done] = answer
        filled = at + 1 - done
        if filled == size or at + 1 == len(tree.inner):
            children = tree.children[tree.first[done] : tree.first[at + 1]]
            rows = np.repeat(np.arange(filled), np.diff(tree.first[done : at + 2]))
            batch = p[:filled], log_likelihood[:filled], uniforms(keys[done : at + 1], draws)
            records[children] = _records(*batch, rows, tree.tokens[children])
            done = at + 1
            tick(done)
    return records


def _records(
    p: np.ndarray, log_likelihood: np.ndarray, uniform: np.ndarray, rows: np.ndarray, tokens: np.ndarray
) -> np.ndarray:
    """The records of children with these tokens, each below its row of a batch (batch, draws, vocabulary).

    A number in [0, 1) samples the token in whose stretch of the cumulative distribution it falls.
    """
    checked_distributions(p.reshape(-1, p.shape[2]), uniform.size, p.shape[2])
    cumulative = _cumulative(p)
    number = (uniform * cumulative[-1])[rows]
    sampled = (cumulative[tokens, rows] <= number) & (number < cumulative[tokens + 1, rows])
    gold = np.ascontiguousarray(p[rows, :, tokens])
    found = np.empty(len(tokens), RECORD)
    found["p"], found["squares"] = gold.sum(axis=1), (gold**2).sum(axis=1)
    with np.errstate(divide="ignore"):
        found["log_likelihood"] = logsumexp(log_likelihood[rows] + np.log(gold), axis=1)
    mode = p.argmax(axis=2)[rows] == tokens[:, None]
    for hits, name, first in ((sampled, "hits", "first_hit"), (mode, "modes", "first_mode")):
        found[name] = hits.sum(axis=1)
        found[first] = np.where(found[name] > 0, hits.argmax(axis=1) + 1, NEVER_HIT)
    return found


def _cumulative(p: np.ndarray) -> np.ndarray:
    """Sums of the first 0, 1, ... probabilities, shape (vocabulary + 1, batch, draws).

    Ten times faster than `np.cumsum`, which does not add rows at once.
    """
    sums = np.zeros((p.shape[2] + 1, *p.shape[:2]))
    for token in range(p.shape[2]):
        np.add(sums[token], p[..., token], out=sums[token + 1])
    return sums
