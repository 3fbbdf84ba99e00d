"""Verdicts: what a number with its interval says of a claim, and how verdicts read.

A claim is a region of values. If the whole interval lies in the region the claim holds, if all of it lies
outside it does not, and otherwise the run cannot tell. What a run does not contain has a reason instead.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import pandas as pd

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot tell"
ABSENT, NOT_YET = "not in this run", "not yet run"
CONTROL, NOTE = "control", "note"
BITS = "{:+.4f} bits"


@dataclass(frozen=True)
class Region:
    """The values between two bounds, neither of which is part of it."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def within(cls, distance: float) -> Self:
        """Values that are zero but for `distance`."""
        return cls(-distance, distance)

    def verdict(self, low: float, high: float) -> str:
        """Of an interval; one that is not known decides nothing."""
        if math.isnan(low) or math.isnan(high):
            return UNDECIDED
        if self.low < low and high < self.high:
            return HOLDS
        return FAILS if high <= self.low or low >= self.high else UNDECIDED

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:,.7g}"
        if math.isinf(self.low):
            return f"below {self.high:,.7g}"
        return f"between {self.low:,.7g} and {self.high:,.7g}"


@dataclass(frozen=True)
class Finding:
    """A number of this run, its interval, and where it would have to lie; or why there is none.

    `shape` is how a number is written, `note` what else the reader should know of it. What stands `beside`
    the claim does not enter its verdict: a CONTROL, of which the paper says nothing, or a NOTE.
    """

    subject: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    region: Region = Region()
    shape: str = BITS
    note: str = ""
    absent: str = ""
    beside: str = ""

    @property
    def verdict(self) -> str:
        """Follows from the interval and the region alone."""
        if self.beside == NOTE:
            return NOTE
        found = self.absent or self.region.verdict(self.low, self.high)
        return f"{CONTROL}: {found}" if self.beside == CONTROL else found

    @property
    def number(self) -> str:
        """With its unit."""
        return "" if math.isnan(self.value) else self.shape.format(self.value)

    @property
    def interval(self) -> str:
        """Without its unit; a bound that is not known is a question mark."""
        if math.isnan(self.value):
            return ""
        digits = self.shape.split("}")[0] + "}"
        low, high = ("?" if math.isnan(x) else digits.format(x) for x in (self.low, self.high))
        return f"[{low}, {high}]".replace("inf", "∞")

    @property
    def sentence(self) -> str:
        """As text."""
        note = f" ({self.note})" if self.note else ""
        if self.absent:
            return f"**{self.verdict}**: {self.subject}{note}."
        wanted = f"; the claim needs a value {self.wanted}" if self.wanted else ""
        return f"**{self.verdict}**: {self.subject}: {self.number} {self.interval}{note}{wanted}."

    @property
    def wanted(self) -> str:
        """Where the number would have to lie; nowhere if there is none, or nothing hangs on it."""
        return "" if self.absent or self.beside == NOTE else str(self.region)


@dataclass(frozen=True)
class Claim:
    """What the paper says, with its numbers, and what this run found."""

    title: str
    paper: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """Of all findings."""
        return together(finding.verdict for finding in self.findings)


def together(verdicts: Iterable[str]) -> str:
    """One word if all agree, else how many say what; controls and notes have no say."""
    counts = Counter(verdict for verdict in verdicts if not verdict.startswith((CONTROL, NOTE)))
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{verdict} ({count} of {counts.total()})" for verdict, count in counts.items())


def to_frame(claims: Iterable[Claim]) -> pd.DataFrame:
    """One row per finding."""
    return pd.DataFrame(
        {
            "Claim": f"{number}. {claim.title}",
            "The paper": claim.paper,
            "This run": finding.subject + (f" ({finding.note})" if finding.note else ""),
            "Value": finding.number,
            "Interval": finding.interval,
            "Holds if": finding.wanted,
            "Verdict": finding.verdict,
        }
        for number, claim in enumerate(claims, start=1)
        for finding in claim.findings
    )


def claims_once(frame: pd.DataFrame) -> pd.DataFrame:
    """For the eye: a claim, and what the paper says of it, in the first of its rows only."""
    again = frame["Claim"].duplicated()
    return frame.assign(**{column: frame[column].mask(again, "") for column in ("Claim", "The paper")})


def to_markdown(claims: list[Claim], caption: str) -> str:
    """The text: first the verdicts, then claim by claim the numbers behind them."""
    lines = ["# What of the paper holds in this run", "", caption, "", "| claim | verdict |", "|---|---|"]
    lines += [f"| {number}. {claim.title} | {claim.verdict} |" for number, claim in enumerate(claims, 1)]
    for number, claim in enumerate(claims, start=1):
        lines += ["", f"## {number}. {claim.title}", "", f"The paper: {claim.paper}", ""]
        lines += [f"- {finding.sentence}" for finding in claim.findings]
    return "\n".join(lines) + "\n"
