"""Texts that a generator writes from nothing: what a reader looks at, and what metrics on samples read."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ganlm.generator import Explicit, Latent, Sampled, checked_draws

ROWS_AT_ONCE = 1024
LINE_BREAKS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"  # those of `str.splitlines`
_VISIBLE = str.maketrans(dict.fromkeys(LINE_BREAKS, "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"))


@dataclass(frozen=True)
class Settings:
    """How many samples, of how many tokens, from which seed."""

    count: int
    length: int
    seed: int


def draw(model: Explicit | Latent | Sampled, count: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Independent texts from the start, shape (count, length).

    Rows are drawn together, as one step costs a network or a program about the same for many; not all of
    them, as a step holds a distribution per row.
    """
    pieces = [min(ROWS_AT_ONCE, count - start) for start in range(0, count, ROWS_AT_ONCE)]
    return np.concatenate([_draw(model, rows, length, rng) for rows in pieces])


def lines(texts: Iterable[str]) -> str:
    """One text per line; a line break inside a text is shown as an arrow, so that it does not end it."""
    return "".join(f"{text.translate(_VISIBLE)}\n" for text in texts)


def _draw(model: Explicit | Latent | Sampled, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """By the generator's own way of emitting texts, if it has one; a sampled one is asked token by token."""
    if hasattr(model, "sample"):
        drawn = model.sample(rows, length, rng)
        return np.stack(checked_draws(drawn, [length] * rows, model.vocabulary))
    return _token_by_token(model, rows, length, rng)


def _token_by_token(model: Sampled, rows: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """One draw after each row's own prefix, all rows in one request per position."""
    tokens = np.empty((rows, length), np.int64)
    for position in range(length):
        requests = [(row, position, 1) for row in range(rows)]
        drawn = model.draw_in_windows(tokens[:, :position], requests, int(rng.integers(2**63)))
        tokens[:, position] = np.concatenate(drawn)
    return tokens
