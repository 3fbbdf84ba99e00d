"""Exact bits of a model whose distributions are known, and what N draws of it would have given.

Given the text, the draws at a position are independent and the gold token is drawn with its known
probability p, so the count of hits among N draws is Binomial(N, p) and the first hit is geometric. One
pass over the text and one random number per position replace N passes; expectations need not even that.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ganlm.bins import Tally
from ganlm.estimators import first_hits, gold_counts, smoothed_generator
from ganlm.generator import Explicit, GeneratorError
from ganlm.inverse_binomial import NEVER_HIT
from ganlm.logs import Progress
from ganlm.measurement import EXACT, FIXED_DRAWS, SAMPLE, Row, Task
from ganlm.randomness import keyed_rng
from ganlm.resume import Journal

PIECE_TOKENS = 1 << 18
ROUNDING_BITS = 1e-5


def measure(model: Explicit, task: Task, journal: Journal, workers: int) -> list[Row]:  # noqa: ARG001
    """The rows of the task's blocks, in one pass that is too short to be worth resuming."""
    return [*_rows(model, task), *_brier_rows(model, task)]


def _rows(model: Explicit, task: Task) -> Iterator[Row]:
    total = sum(stop - start for start, stop in map(task.grid.span, task.blocks))
    progress, done = Progress(f"{task.model} {task.protocol.name}", total), 0
    tally = Tally(task)
    for blocks, bits in gold_bits(model, task):
        done += len(bits)
        progress.update(done, bits=bits.mean())
        p = np.exp2(-bits)
        tally.add_known(blocks, bits, p)
        yield from task.rows(SAMPLE, EXACT, 0, blocks, bits)
        if task.settings.mixture:
            mixed = smoothed_generator(p, task.settings.mixture, task.vocabulary)
            yield from task.rows(task.settings.mixture_estimand, EXACT, 0, blocks, -np.log2(mixed))
        yield from _fixed_draw_rows(task, blocks, p)
        yield from _first_hit_rows(task, blocks, p)
    yield from tally.rows()


def gold_bits(
    model: Explicit, task: Task, piece_tokens: int = PIECE_TOKENS
) -> Iterator[tuple[Sequence[int], np.ndarray]]:
    """Exact bits of every token of the task's blocks, in pieces of whole blocks."""
    carried = model.start(1)
    for blocks in _pieces(task.blocks, max(1, piece_tokens // task.settings.block)):
        start, stop = task.grid.span(blocks[0])[0], task.grid.span(blocks[-1])[1]
        if task.protocol.window is None:
            text = task.tokens[None, start:stop].astype(np.int64)
            bits, carried = model.surprisal(carried, text)
            yield blocks, _checked(bits, text)
        else:
            yield blocks, _windowed_bits(model, task.tokens, task.protocol.window, start, stop)


def _pieces(blocks: Sequence[int], size: int) -> Iterator[list[int]]:
    """Runs of consecutive blocks, none longer than `size`."""
    for run in np.split(np.asarray(blocks), np.flatnonzero(np.diff(blocks) != 1) + 1):
        for first in range(0, len(run), size):
            yield run[first : first + size].tolist()


def _windowed_bits(model: Explicit, tokens: np.ndarray, window: int, start: int, stop: int) -> np.ndarray:
    """Bits of the positions start..stop, from all windows that they touch.

    The text's last, shorter window is scored too.
    """
    first = start - start % window
    last = min(stop + -stop % window, len(tokens))
    whole = last - (last - first) % window
    bits = []
    if whole > first:
        windows = tokens[first:whole].reshape(-1, window).astype(np.int64)
        bits.append(_checked(model.surprisal(model.start(len(windows)), windows)[0], windows))
    if last > whole:
        rest = tokens[None, whole:last].astype(np.int64)
        bits.append(_checked(model.surprisal(model.start(1), rest)[0], rest))
    return np.concatenate(bits)[start - first : stop - first]


def _checked(bits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The bits in one row, if they are bits: a probability above 1 by rounding counts as 1."""
    if np.shape(bits) != tokens.shape:
        raise GeneratorError(
            f"the generator's `surprisal` answered shape {np.shape(bits)}, not {tokens.shape}"
        )
    if not np.all(bits >= -ROUNDING_BITS):
        raise GeneratorError("the generator's `surprisal` answered NaN, or a probability above 1")
    return np.maximum(bits, 0.0).ravel()


def _fixed_draw_rows(task: Task, blocks: Sequence[int], p: np.ndarray) -> Iterator[Row]:
    names = [name for name in task.settings.estimators if name in FIXED_DRAWS]
    wanted = [(name, task.settings.draws) for name in names]
    if "plug-in" in names:
        wanted += [("plug-in", draws) for draws in {*task.settings.draws_grid} - {task.settings.draws}]
    for draws in sorted({draws for _, draws in wanted}):
        counts = _by_block(task, blocks, p, ("counts", draws), lambda q, rng, n=draws: gold_counts(q, n, rng))
        for name in [name for name, n in wanted if n == draws]:
            estimator = task.estimator(name, draws)
            yield from task.rows(
                SAMPLE, name, draws, blocks, estimator.estimate(counts),
                variance=estimator.variance(p), drawn=draws, never_hit=counts == 0,
            )  # fmt: skip
            yield from task.rows(SAMPLE, f"expected-{name}", draws, blocks, estimator.expectation(p))


def _first_hit_rows(task: Task, blocks: Sequence[int], p: np.ndarray) -> Iterator[Row]:
    names = task.settings.estimators
    if "ibs" in names:
        estimator = task.estimator("ibs")
        hits = _by_block(task, blocks, p, "first-hits", lambda q, rng: first_hits(q, estimator.cap, rng))
        yield from task.rows(
            SAMPLE, "ibs", estimator.cap, blocks, estimator.estimate(hits),
            variance=estimator.variance(p), never_hit=hits == NEVER_HIT,
            drawn=np.where(hits == NEVER_HIT, estimator.cap, hits),
        )  # fmt: skip
        yield from task.rows(SAMPLE, "expected-ibs", estimator.cap, blocks, estimator.expectation(p))
    if "rb-ibs" in names:
        yield from _rb_ibs_rows(task, blocks, p)


def _rb_ibs_rows(task: Task, blocks: Sequence[int], p: np.ndarray) -> Iterator[Row]:
    estimator = task.estimator("rb-ibs")
    draws, cap = estimator.draws, estimator.cap
    counts = _by_block(task, blocks, p, ("counts", draws), lambda q, rng: gold_counts(q, draws, rng))
    hits = _by_block(task, blocks, p, "late-hits", lambda q, rng: first_hits(q, cap, rng, after=draws))
    late = np.where(hits == NEVER_HIT, cap, hits)
    yield from task.rows(
        SAMPLE, "rb-ibs", draws, blocks, estimator.estimate(counts, hits),
        variance=estimator.variance(p), drawn=np.where(counts > 0, draws, late),
        never_hit=(counts == 0) & (hits == NEVER_HIT),
    )  # fmt: skip
    yield from task.rows(SAMPLE, "expected-rb-ibs", draws, blocks, estimator.expectation(p))


def _brier_rows(model: Explicit, task: Task) -> Iterator[Row]:
    """The exact Brier score 2 p - Σ p², which needs whole distributions: on the subset only."""
    window = task.protocol.window
    if "brier" not in task.settings.estimators or window is None:
        return
    subset = task.grid.subset(task.settings.characters, task.settings.seed)
    spans = {int(block): task.grid.span(int(block)) for block in subset if block in task.blocks}
    numbers = sorted(
        {n for start, stop in spans.values() for n in range(start // window, -(-stop // window))}
    )
    scores = dict(_brier_scores(model, task.tokens, window, numbers))
    for block, (start, stop) in spans.items():
        values = np.array([scores[position] for position in range(start, stop)])
        yield from task.rows(SAMPLE, "brier", 0, [block], values, unit="score")


def _brier_scores(
    model: Explicit, tokens: np.ndarray, window: int, numbers: Sequence[int]
) -> Iterator[tuple[int, float]]:
    """Position and score of every token of the windows of these numbers."""
    starts = np.array(numbers, int) * window
    lengths = np.minimum(starts + window, len(tokens)) - starts
    for length in np.unique(lengths):
        rows = starts[lengths == length]
        windows = tokens[rows[:, None] + np.arange(length)].astype(np.int64)
        for offset, p in model.distributions(windows):
            gold = np.take_along_axis(p, windows[:, offset : offset + 1], axis=1)[:, 0]
            yield from zip(rows + offset, 2 * gold - (p**2).sum(axis=1), strict=True)


def _by_block(task: Task, blocks: Sequence[int], p: np.ndarray, purpose: object, draw: object) -> np.ndarray:
    """Random numbers for every position, keyed by block: the same however the text is divided."""
    start = task.grid.span(blocks[0])[0]
    spans = [(a - start, b - start) for a, b in map(task.grid.span, blocks)]
    return np.concatenate(
        [
            draw(p[a:b], keyed_rng(*task.key(purpose, int(block))))
            for block, (a, b) in zip(blocks, spans, strict=True)
        ]
    )
