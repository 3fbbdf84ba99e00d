"""Bits of a generator that is explicit only once its noise is drawn: two questions from the same draws.

Per token: the noise is drawn anew from its prior at every position, as in the paper, so the probability of
a token is E_z p(token | prefix, z). Estimators: the mean softmax, and hits of sampled or most likely tokens.

Per window: the noise is drawn once for a whole window, so its likelihood is E_z Π_t p(x_t | x_<t, z). The two
are different questions: only the second is a likelihood of what the generator emits. Its estimate is an upper
bound on average, as the logarithm of a mean over draws is too small (Jensen's inequality), and a loose one
where few draws can emit a window.

All windows share their draws, which come in independent groups (see `noise_groups`). What a group added to an
estimate is found by leaving it out: with θ from all N draws and θ_g without the n_g draws of group g, it is
(1 - n_g / N) (θ - θ_g), whose sum over the groups removes the bias of order 1/N, and whose spread is the
Monte-Carlo error (grouped jackknife; Busing, Meijer & van der Leeden, Statistics and Computing 9:3, 1999).
On average it is not too small (Efron & Stein, Annals of Statistics 9:586, 1981). Where few draws carry an
estimate it can be up to twice the real one; the delta method, whose influences are bounded, is a tenth of it.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ganlm.bins import Tally
from ganlm.estimators import LN2
from ganlm.generator import GeneratorError, Latent
from ganlm.inverse_binomial import NEVER_HIT, Ibs
from ganlm.logs import Progress
from ganlm.measurement import ARGMAX, FIXED_DRAWS, SAMPLE, WINDOW, Row, Task
from ganlm.noise_groups import group_records, group_sizes, walk_sizes
from ganlm.prefix_tree import ABSENT, ROOT, PrefixTree
from ganlm.resume import Journal

WINDOW_LIKELIHOOD = "window-likelihood"
FAIR_SHARES = 2


def measure(model: Latent, task: Task, journal: Journal, workers: int) -> list[Row]:  # noqa: ARG001
    """The rows of the task's blocks, from one walk per group of draws, each kept once it is finished."""
    if task.protocol.window is None:
        raise GeneratorError("a latent generator draws its noise once per window, so it needs windows")
    windows = Windows.of(task)
    nodes, positions = len(windows.tree.inner), windows.tree.positions
    logging.info(
        "%s: %s prefixes for %s positions, %.1f times less work than one by one",
        task.protocol.name, f"{nodes:,}", f"{positions:,}", positions / nodes,
    )  # fmt: skip
    sizes = group_sizes(task.settings.draws)

    def walk(group: int) -> np.ndarray:
        what = f"{task.model} {task.protocol.name} draws {group + 1}/{len(sizes)}"
        key = (task.settings.seed, task.model, group)
        progress = Progress(what, nodes * len(walk_sizes(sizes[group])), "prefixes")
        return group_records(model, windows.tree, int(sizes[group]), key, progress.update)

    groups = [
        journal.array(f"{task.protocol.name}.group-{group}", lambda group=group: walk(group))
        for group in range(len(sizes))
    ]
    tally = Tally(task)
    rows = [row for block in task.blocks for row in _block_rows(task, block, windows, sizes, groups, tally)]
    return [*rows, *tally.rows()]


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows that the blocks of a task touch: their numbers in the text, and their tree."""

    size: int
    numbers: np.ndarray
    tree: PrefixTree

    @classmethod
    def of(cls, task: Task) -> "Windows":
        """Blocks may cut windows; the text's last window may be short."""
        size, tokens = task.protocol.window, task.tokens
        spans = map(task.grid.span, task.blocks)
        numbers = np.unique(np.concatenate([np.arange(a // size, (b - 1) // size + 1) for a, b in spans]))
        positions = numbers[:, None] * size + np.arange(size)
        inside = positions < len(tokens)
        rows = np.where(inside, tokens[np.where(inside, positions, 0)].astype(np.int32), ABSENT)
        return cls(size, numbers, PrefixTree.of(rows))

    def nodes(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each position: its node, the node that its window ends with, and the window's length."""
        positions = np.arange(start, stop)
        rows = np.searchsorted(self.numbers, positions // self.size)
        lengths = (self.tree.nodes[rows] != ROOT).sum(axis=1)
        return self.tree.nodes[rows, positions % self.size], self.tree.ends[rows], lengths


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate at each position, from all draws, and what each group added to it, (groups, positions)."""

    values: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, with_and_without: np.ndarray, sizes: np.ndarray) -> "Estimate":
        """From the estimates by all draws and by those without each group, one below the other.

        Where the others have infinite bits without a group, so might other draws: the error has no bound,
        and what the group added is nan.
        """
        whole, without = with_and_without[0], with_and_without[1:]
        without = np.where(np.isfinite(without), without, np.nan)
        return cls(whole, (1 - sizes / sizes.sum())[:, None] * (whole - without))


def _block_rows(
    task: Task, block: int, windows: Windows, sizes: np.ndarray, groups: Sequence[np.ndarray], tally: Tally
) -> Iterator[Row]:
    nodes, ends, lengths = windows.nodes(*task.grid.span(block))
    records = np.stack([group[nodes] for group in groups])
    _tally(tally, task, block, records, sizes)
    if "mean-softmax" in task.settings.estimators:
        yield from _mean_softmax_rows(task, block, records["p"], records["squares"], sizes)
    for estimand, counts, first in ((SAMPLE, "hits", "first_hit"), (ARGMAX, "modes", "first_mode")):
        yield from _hit_rows(task, estimand, block, records[counts], records[first], sizes)
    likelihoods = np.stack([group["log_likelihood"][ends] for group in groups])
    nats = all_and_without(np.logaddexp, likelihoods) - np.log(_draws(sizes))[:, None]
    window = Estimate.of(-nats / LN2 / lengths, sizes)
    yield from _rows(task, WINDOW, WINDOW_LIKELIHOOD, block, window)


def _tally(tally: Tally, task: Task, block: int, records: np.ndarray, sizes: np.ndarray) -> None:
    """Bits by position and by hits, with what each group of draws added to those by position."""
    draws = int(sizes.sum())
    tally.add_counted([block], records["hits"].sum(axis=0), draws)
    shared = {}
    if "harmonic" in task.settings.estimators:
        shared["harmonic"] = _counted(task, "harmonic", records["hits"], sizes)
    if "mean-softmax" in task.settings.estimators:
        shared["mean-softmax"] = _mean_softmax(task, records["p"], sizes)
        tally.add_by_position([block], "mean-softmax", draws, shared["mean-softmax"].values)
    for name, estimate in shared.items():
        for number, added in enumerate(estimate.groups, start=1):
            tally.add_by_position([block], name, draws, added, number)


def _mean_softmax(task: Task, p: np.ndarray, sizes: np.ndarray) -> Estimate:
    means = all_and_without(np.add, p) / _draws(sizes)[:, None]
    return Estimate.of(task.estimator("mean-softmax").estimate(means), sizes)


def _counted(task: Task, name: str, counts: np.ndarray, sizes: np.ndarray) -> Estimate:
    draws, hits = _draws(sizes), all_and_without(np.add, counts.astype(np.int64))
    found = [task.estimator(name, int(n)).estimate(row) for n, row in zip(draws, hits, strict=True)]
    return Estimate.of(np.stack(found), sizes)


def _mean_softmax_rows(
    task: Task, block: int, p: np.ndarray, squares: np.ndarray, sizes: np.ndarray
) -> Iterator[Row]:
    """The mean softmax, its Jensen bias to first order, and the jackknife over groups that removes it.

    The jackknife is used only where softmaxes are soft, i.e. no group holds more than FAIR_SHARES times its
    share of the sum: leaving out the only draw that matters would jump by several bits.
    """
    draws, sums = _draws(sizes), all_and_without(np.add, p)
    estimator = task.estimator("mean-softmax")
    plain = _mean_softmax(task, p, sizes)
    mean = sums[0] / draws[0]
    spread = np.maximum(squares.sum(axis=0) / draws[0] - mean**2, 0) * draws[0] / (draws[0] - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(mean > estimator.clip, estimator.bias(mean, spread), 0.0)
    soft = np.all(p * draws[0] <= FAIR_SHARES * sizes[:, None] * sums[0], axis=0)
    corrected = np.where(soft, plain.values + plain.groups.sum(axis=0), plain.values)
    yield from _rows(task, SAMPLE, "mean-softmax", block, plain)
    yield from _rows(task, SAMPLE, "mean-softmax-jackknife", block, Estimate(corrected, plain.groups))
    yield from task.rows(
        SAMPLE, "mean-softmax-bias", int(draws[0]), [block], bias, variance=np.nan, drawn=draws[0]
    )


def _hit_rows(
    task: Task, estimand: str, block: int, counts: np.ndarray, first: np.ndarray, sizes: np.ndarray
) -> Iterator[Row]:
    for name in task.settings.estimators:
        if name in FIXED_DRAWS:
            estimate = _counted(task, name, counts, sizes)
        elif name == "ibs":
            estimate = Estimate.of(np.stack(_ibs(first, sizes)), sizes)
        else:
            continue
        yield from _rows(task, estimand, name, block, estimate, never_hit=counts.sum(axis=0) == 0)


def _ibs(first: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """`ibs` by all groups, and by all but each, as the mean of one run from the start of every group.

    A run that finds no hit in its group goes on with the next one, round and round, so that its cap is N.
    """
    everyone = np.arange(len(sizes))
    return [
        Ibs(cap=int(sizes[kept].sum())).estimate(_waits(first[kept], sizes[kept])).mean(axis=0)
        for kept in (everyone, *(np.delete(everyone, group) for group in everyone))
    ]


def _waits(first: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Draws up to the first hit from the start of every group on, NEVER_HIT where there is none."""
    waits, wait = np.empty(first.shape), np.full(first.shape[1], np.inf)
    for group in [*reversed(range(len(sizes)))] * 2:
        wait = np.where(first[group] == NEVER_HIT, sizes[group] + wait, first[group])
        waits[group] = wait
    return np.where(np.isinf(waits), NEVER_HIT, waits).astype(np.int64)


def _draws(sizes: np.ndarray) -> np.ndarray:
    """Number of draws of all groups, and of all but each."""
    return sizes.sum() - np.concatenate([[0], sizes])


def all_and_without(combine: np.ufunc, values: np.ndarray) -> np.ndarray:
    """The combination of all groups' values, and those of all but one: nothing is taken off again."""
    up, down = combine.accumulate(values), combine.accumulate(values[::-1])[::-1]
    return np.concatenate([up[-1:], down[1:2], combine(up[:-2], down[2:]), up[-2:-1]])


def _rows(
    task: Task, estimand: str, name: str, block: int, estimate: Estimate, never_hit: np.ndarray | float = 0.0
) -> Iterator[Row]:
    draws = task.settings.draws
    (row,) = task.rows(
        estimand, name, draws, [block], estimate.values, variance=np.nan, drawn=draws, never_hit=never_hit
    )
    yield row
    for number, added in enumerate(estimate.groups.sum(axis=1).tolist(), start=1):
        yield row._replace(group=number, total=added, drawn=0.0, never_hit=0)
