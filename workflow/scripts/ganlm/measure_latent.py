"""Bits of a generator that is explicit only once its noise is drawn: two questions from the same draws.

Per token: the noise is drawn anew from its prior at every position, as in the paper, so the probability of
a token is E_z p(token | prefix, z). Estimators: the mean softmax, and hits of sampled or most likely tokens.

Per window: the noise is drawn once for a whole window, so its likelihood is E_z Π_t p(x_t | x_<t, z). The two
are different questions: only the second is a likelihood of what the generator emits.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp

from ganlm.estimators import LN2
from ganlm.generator import GeneratorError, Latent
from ganlm.inverse_binomial import NEVER_HIT
from ganlm.measurement import ARGMAX, SAMPLE, WINDOW, Row, Task
from ganlm.randomness import keyed_rng
from ganlm.resume import Journal

WINDOW_LIKELIHOOD = "window-likelihood"
SOFT = 0.1
HIT_ESTIMATORS = ("plug-in", "smoothed", "harmonic", "ibs")


def measure(model: Latent, task: Task, journal: Journal, workers: int) -> list[Row]:
    """The rows of the task's blocks, `workers` blocks at a time."""
    return journal.run(lambda block: list(_block_rows(model, task, block)), task, workers)


def _block_rows(model: Latent, task: Task, block: int) -> Iterator[Row]:
    start, stop = task.grid.span(block)
    window = task.protocol.window
    numbers = range(start // window, (stop - 1) // window + 1)
    parts = [_window(model, task, number) for number in numbers]
    inside = np.arange(numbers[0] * window, numbers[0] * window + sum(p.shape[1] for p, _, _ in parts))
    keep = (inside >= start) & (inside < stop)
    owner = np.repeat(numbers, [p.shape[1] for p, _, _ in parts])[keep]
    p, hits, modes = (np.concatenate(arrays, axis=1)[:, keep] for arrays in zip(*parts, strict=True))
    window_bits = np.concatenate([np.full(p.shape[1], _window_bits(p)) for p, _, _ in parts])[keep]
    draws = task.settings.draws
    if "mean-softmax" in task.settings.estimators:
        yield from _mean_softmax_rows(task, block, p, owner)
    yield from _hit_rows(task, SAMPLE, block, hits, owner)
    yield from _hit_rows(task, ARGMAX, block, modes, owner)
    yield from task.rows(WINDOW, WINDOW_LIKELIHOOD, draws, [block], window_bits, variance=np.nan, drawn=draws)


def _window(model: Latent, task: Task, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gold probabilities, hits of sampled tokens and of most likely tokens, (draws, length) each.

    Random numbers are keyed by window, because blocks may share one.
    """
    size, draws = task.protocol.window, task.settings.draws
    tokens = task.tokens[None, number * size : (number + 1) * size].astype(np.int64)
    rng = keyed_rng(*task.key("noise", number))
    answer = [np.asarray(array) for array in model.gold(tokens, draws, rng)]
    shapes, wanted = [array.shape for array in answer], [(draws, 1, tokens.shape[1])] * 2
    if shapes != wanted:
        raise GeneratorError(f"the generator's `gold` answered arrays of shapes {shapes}, not {wanted}")
    p, mode = answer
    if not np.all((p >= 0) & (p <= 1 + 1e-6)):
        raise GeneratorError("the generator's `gold` answered probabilities outside 0 to 1, or NaN")
    p = p[:, 0].astype(float)
    return p, rng.random(p.shape) < p, mode[:, 0].astype(bool)


def _window_bits(p: np.ndarray) -> float:
    """-log2 of the mean over draws of the window's probability, per token."""
    with np.errstate(divide="ignore"):
        log_likelihood = logsumexp(np.log(p).sum(axis=1)) - np.log(len(p))
    return -log_likelihood / LN2 / p.shape[1]


def _mean_softmax_rows(task: Task, block: int, p: np.ndarray, owner: np.ndarray) -> Iterator[Row]:
    """The mean softmax, its Jensen bias to first order, and the jackknife that removes it.

    The jackknife is used only where softmaxes are soft, i.e. no draw holds SOFT or more of the sum: leaving
    out the only draw that matters would jump by several bits.
    """
    estimator = task.estimator("mean-softmax")
    mean, spread = p.mean(axis=0), p.var(axis=0, ddof=1)
    plain = estimator.estimate(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(mean > estimator.clip, estimator.bias(mean, spread), 0.0)
    soft = p.max(axis=0) < SOFT * p.sum(axis=0)
    corrected = plain.copy()
    corrected[soft] = estimator.jackknife(p[:, soft])
    variance = _shared_noise_variance(p, owner)
    for name, values, noise in (
        ("mean-softmax", plain, variance),
        ("mean-softmax-jackknife", corrected, variance),
        ("mean-softmax-bias", bias, np.nan),
    ):
        yield from task.rows(
            SAMPLE, name, estimator.draws, [block], values, variance=noise, drawn=estimator.draws
        )


def _hit_rows(task: Task, estimand: str, block: int, hits: np.ndarray, owner: np.ndarray) -> Iterator[Row]:
    counts = hits.sum(axis=0)
    first = np.where(counts > 0, hits.argmax(axis=0) + 1, NEVER_HIT)
    for name in task.settings.estimators:
        if name not in HIT_ESTIMATORS:
            continue
        estimator = task.estimator(name)
        if name == "ibs":
            estimator = type(estimator)(cap=len(hits))
        statistics = {"counts": counts, "first_hits": first}
        inputs = {key: statistics[key] for key in estimator.inputs}
        yield from task.rows(
            estimand, name, len(hits), [block], estimator.estimate(**inputs),
            variance=np.nan if name == "ibs" else _shared_noise_variance(hits, owner),
            drawn=len(hits), never_hit=counts == 0,
        )  # fmt: skip


def _shared_noise_variance(values: np.ndarray, owner: Sequence[int]) -> np.ndarray:
    """Variance of a window's sum of -log2 mean values, spread evenly over its tokens (delta method).

    One noise draw serves all positions of a window, so their errors are correlated: what varies between
    draws is the sum over the window of value / (mean ln 2). Windows have draws of their own.
    """
    draws = len(values)
    influence = values / ((values.mean(axis=0) + 1 / draws) * LN2)
    variance = np.empty(values.shape[1])
    for window in np.unique(owner):
        mine = owner == window
        variance[mine] = influence[:, mine].sum(axis=1).var(ddof=1) / draws / mine.sum()
    return variance
