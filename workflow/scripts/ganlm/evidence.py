"""What the judge of the paper's claims is given: thresholds, questions, results; and what two results say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import pandas as pd

from ganlm.findings import ABSENT, Finding, Region
from ganlm.intervals import Interval
from ganlm.summary import chosen, difference


@dataclass(frozen=True)
class Thresholds:
    """The `findings` block of the config, but for the language model, which `Questions` names."""

    draws: int
    window: int
    margin: float
    gap: float
    closed_form: float
    reproduced: float
    quality: float

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From the config."""
        return cls(**{name: block[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Questions:
    """Which results speak for which claim: names of instances, mostly with the protocol to look at.

    `arms` maps a generator after full adversarial training to the language model it started from. `controls`
    are those that trained in a way of which the paper says nothing.
    """

    protocol: str
    level: float
    max_draws: int
    choose_n: list[str]
    gaps: list[str]
    gans: dict[str, str]
    opponents: dict[str, str]
    noisy: dict[str, str]
    partners: list[str]
    swept: list[str]
    arms: dict[str, str]
    controls: list[str]
    reproduced: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Results:
    """What was read: model -> result rows, chosen N, rows and choice of the sweep, sample scores.

    `sweep` holds the rows of the test part, `validation` those of the validation part that `windows` was
    chosen from. `published` maps the `id` of a quoted result to its exact bits or, without them, its
    approximate ones.
    """

    rows: dict[str, pd.DataFrame]
    draws: dict[str, dict]
    sweep: dict[str, pd.DataFrame]
    validation: dict[str, pd.DataFrame]
    windows: dict[str, dict]
    scores: dict[str, dict]
    published: dict[str, float]


@dataclass(frozen=True)
class Sides:
    """Rows of two estimates of the same bits, between which the truth is: one errs downwards, one upwards.

    Where bits are exact both are the same.
    """

    below: pd.DataFrame
    above: pd.DataFrame

    @classmethod
    def of(cls, rows: pd.DataFrame, protocol: str) -> Self | None:
        """Harmonic estimate and mean softmax, unless bits are exact; None where one of them is missing."""
        exact = chosen(rows, protocol, "exact")
        below, above = (chosen(rows, protocol, name) for name in ("harmonic", "mean-softmax"))
        if exact is not None:
            return cls(exact, exact)
        return None if below is None or above is None else cls(below, above)


@dataclass(frozen=True)
class Rise:
    """How many bits more one result has than another: at least and at most, errors of estimates included."""

    least: Interval
    most: Interval
    estimators: str

    @classmethod
    def between(
        cls, ours: Sides | None, theirs: Sides | None, level: float, *, same_draws: bool = False
    ) -> Self | None:
        """None where a side is missing, or the two share no text."""
        if ours is None or theirs is None:
            return None
        least = difference(ours.below, theirs.above, level, same_draws=same_draws)
        most = difference(ours.above, theirs.below, level, same_draws=same_draws)
        if least is None or most is None:
            return None
        return cls(least, most, f"{_name(ours.below)} - {_name(theirs.above)}")


def of_rise(subject: str, rise: Rise | None, region: Region) -> Finding:
    """The number is the least rise; the interval reaches from the least one's to the most one's."""
    if rise is None:
        return Finding(subject, absent=ABSENT, note="no estimates from both sides of the same blocks")
    note = rise.estimators
    if rise.most.mean != rise.least.mean:
        note += f", so at least; at most {rise.most.mean:+.4f}"
    return Finding(subject, rise.least.mean, rise.least.low, rise.most.high, region, note=note)


def _name(rows: pd.DataFrame) -> str:
    return rows["estimator"].iloc[0]


def each(
    found: dict, wanted: Iterable[str], what: str, judge: Callable[..., Iterable[Finding]]
) -> Iterable[Finding]:
    """What `judge` finds in each result that was asked for; a gap is a finding without a number."""
    names = list(wanted)
    if not names:
        yield Finding(what, absent=ABSENT)
    for name in names:
        if name in found:
            yield from judge(name, found[name])
        else:
            yield Finding(f"{what}: {name}", absent=ABSENT)


def of_difference(subject: str, compared: Interval | None, region: Region, note: str = "") -> Finding:
    """From a paired difference; there is none where the two sides share no text."""
    if compared is None:
        return Finding(subject, absent=ABSENT, note="the two share no protocol or no blocks")
    return Finding(subject, compared.mean, compared.low, compared.high, region, note=note)
