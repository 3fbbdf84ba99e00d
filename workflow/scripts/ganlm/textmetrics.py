"""What can be said of samples alone, without a generator's probabilities.

%-IN-TEST-n (Rajeswar et al. 2017; Press et al. 2017): the share of the distinct word n-grams of the samples
that occur in held-out text. It says how much of what is written has been written before, not how likely a
text is: a generator that always writes the same good sentence scores 1.
"""

import math
from collections.abc import Iterable, Sequence

ORDERS = (1, 2, 3, 4)
GROUPS = 20

NGrams = set[tuple[str, ...]]


def in_test(samples: Sequence[str], reference: Iterable[str], order: int) -> dict:
    """The share for n-grams of `order` words, never across lines, and its standard error over samples.

    The error is the grouped jackknife's, sqrt((G - 1) / G Σ_g (share_-g - mean)²), since the distinct
    n-grams of several samples are no sum over them.
    """
    known = _ngrams(reference, order)
    count = min(GROUPS, len(samples))
    groups = [_ngrams(samples[group::count], order) for group in range(count)]
    left_out = [_share(groups[:group] + groups[group + 1 :], known) for group in range(count)]
    mean = sum(left_out) / count
    spread = sum((share - mean) ** 2 for share in left_out)
    distinct = len(set().union(*groups))
    return {
        "order": order,
        "distinct": distinct,
        "share": _share(groups, known),
        "standard_error": math.sqrt((count - 1) / count * spread) if count > 1 else math.nan,
    }


def cut(text: str, length: int | None) -> list[str]:
    """The text as one line, or as lines of `length` characters, which cuts words at their edges."""
    if length is None:
        return [text]
    return [text[start : start + length] for start in range(0, len(text), length)]


def _ngrams(lines: Iterable[str], order: int) -> NGrams:
    """All runs of `order` words within a line."""
    split = (line.split() for line in lines)
    return {gram for words in split for gram in zip(*(words[k:] for k in range(order)), strict=False)}


def _share(groups: Sequence[NGrams], known: NGrams) -> float:
    """Of the distinct n-grams of all groups, those that are known; NaN of none."""
    distinct = set().union(*groups)
    return len(distinct & known) / len(distinct) if distinct else math.nan
