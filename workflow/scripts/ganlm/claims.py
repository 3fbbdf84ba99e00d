"""The claims of Tevet et al. 2019, in the paper's order, held against the result files of a run."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Self

import pandas as pd

from ganlm.findings import ABSENT, NOT_YET, Claim, Finding, Region
from ganlm.intervals import Interval
from ganlm.summary import best, chosen, difference

POINTS = "{:+.2f} percentage points"
DRAWS = "{:,.0f} draws"
TOKENS = "{:.0f} tokens"
# Of a generator with noise: one errs upwards, the other downwards, further apart the longer the window is.
FROM_BOTH_SIDES = ("mean-softmax", "harmonic")


@dataclass(frozen=True)
class Thresholds:
    """The `findings` block of the config."""

    draws: int
    window: int
    margin: float
    gap: float
    closed_form: float
    reproduced: float
    quality: float
    language_model: str | None

    @classmethod
    def parse(cls, block: dict) -> Self:
        """From the config."""
        return cls(**{name: block[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Questions:
    """Which results speak for which claim: names of instances, mostly with the protocol to look at.

    `arms` maps a generator after full adversarial training to the language model it started from.
    """

    protocol: str
    level: float
    max_draws: int
    choose_n: list[str]
    gaps: list[str]
    networks: list[str]
    gans: dict[str, str]
    noisy: dict[str, str]
    swept: list[str]
    arms: dict[str, str]
    writers: dict[str, str]
    reproduced: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Results:
    """What was read: model -> result rows, chosen N, rows and choice of the sweep, sample scores.

    `published` maps the `id` of a quoted result to its exact bits or, without them, its approximate ones.
    """

    rows: dict[str, pd.DataFrame]
    draws: dict[str, dict]
    sweep: dict[str, pd.DataFrame]
    windows: dict[str, dict]
    scores: dict[str, dict]
    published: dict[str, float]


@dataclass(frozen=True)
class Judge:
    """One run against the paper; each method is a claim's findings."""

    results: Results
    questions: Questions
    thresholds: Thresholds

    def bound(self) -> Iterable[Finding]:
        """Hoeffding's bound for the accuracy that the rule asks for."""
        return _each(self.results.draws, self.questions.choose_n, "choice of N", self._bound)

    def _bound(self, model: str, found: dict) -> Iterable[Finding]:
        value = float(found["bounds"]["hoeffding"])
        subject = f"draws that the bound asks for, γ = {found['threshold']:g}, {model}"
        yield Finding(subject, value, value, value, Region(low=self.thresholds.draws), DRAWS)

    def enough_draws(self) -> Iterable[Finding]:
        """From where on the curve is below γ': at first, and for good. Beyond its end nothing is known."""
        return _each(self.results.draws, self.questions.choose_n, "choice of N", self._enough_draws)

    def _enough_draws(self, model: str, found: dict) -> Iterable[Finding]:
        yield Finding(
            f"draws after which {model} changes by less than γ' = {found['threshold']:g}",
            found["crossing"],
            found["first_below"] or self.questions.max_draws,
            found["draws"] or math.inf,
            Region(high=self.thresholds.draws + 1),
            DRAWS,
            "αc/γ'; in brackets, where its curve is below γ' first and for good",
        )

    def longer_windows(self) -> Iterable[Finding]:
        """Bits at longer windows minus those at the paper's, on the same text; and validation's choice.

        By estimates from both sides: what one of them alone says may be its own error.
        """
        return _each(self.results.sweep, self.questions.swept, "sweep over windows", self._longer_windows)

    def _longer_windows(self, model: str, rows: pd.DataFrame) -> Iterable[Finding]:
        short, region = self.thresholds.window, Region(low=self.thresholds.margin)
        windows = sorted(int(name.removeprefix("window-")) for name in rows["protocol"].unique())
        longer = [window for window in windows if window > short]
        found = {name: chosen(rows, f"window-{short}", name) for name in FROM_BOTH_SIDES}
        if not longer or all(ours is None for ours in found.values()):
            yield Finding(f"windows of {short} and longer ones, {model}", absent=ABSENT)
            return
        for window, (estimator, ours) in product(longer, found.items()):
            if ours is not None:
                theirs = chosen(rows, f"window-{window}", estimator)
                compared = difference(theirs, ours, self.questions.level, same_draws=True)
                subject = f"windows of {window} minus windows of {short}, {model}, {estimator}"
                yield _of(subject, compared, region)
        if model in self.results.windows:
            yield self._validation(model)

    def _validation(self, model: str) -> Finding:
        """The window that validation prefers, and those it cannot tell from it."""
        found = self.results.windows[model]
        top = next(point for point in found["points"] if point["window"] == found["window"])
        equals = [point["window"] for point in found["points"] if point["low"] <= top["high"]]
        return Finding(
            f"window that validation chooses, {model}",
            found["window"],
            min(equals),
            max(equals),
            Region(high=self.thresholds.window + 1),
            TOKENS,
            "in brackets, those whose intervals overlap with its own",
        )

    def leakgan(self) -> Iterable[Finding]:
        """There is no LeakGAN here yet."""
        yield Finding("LeakGAN", absent=NOT_YET)

    def reproduced(self) -> Iterable[Finding]:
        """Models that stand for a row of the paper's Table 1, each minus the published number."""
        asked = self.questions.reproduced
        return _each(self.results.rows, asked, "model with a published result", self._reproduced)

    def _reproduced(self, model: str, rows: pd.DataFrame) -> Iterable[Finding]:
        protocol, paper = self.questions.reproduced[model]
        ours, estimator = best(rows, protocol)
        if ours is None:
            yield Finding(f"{model} under {protocol}", absent=ABSENT)
            return
        published = self.results.published[paper]
        estimates = ours[ours["group"] == 0]
        constant = estimates.assign(total=estimates["tokens"] * published)
        compared = difference(ours, constant, self.questions.level)
        subject = f"{model} ({estimator}, {protocol}) minus the published {published:g}"
        yield _of(subject, compared, Region.within(self.thresholds.reproduced))

    def approximation(self) -> Iterable[Finding]:
        """The published estimate minus exact bits, and minus its expectation in closed form."""
        return _each(self.results.rows, self.questions.gaps, "model with exact bits", self._approximation)

    def _approximation(self, model: str, rows: pd.DataFrame) -> Iterable[Finding]:
        draws, level = self.thresholds.draws, self.questions.level
        select = partial(chosen, rows, self.questions.protocol)
        drawn, expected = select("plug-in", draws), select("expected-plug-in", draws)
        exact = select("exact")
        if drawn is None or expected is None or exact is None:
            yield Finding(f"approximate bits of {model} from {draws:,} draws", absent=ABSENT)
            return
        gap, closed = difference(drawn, exact, level), difference(drawn, expected, level)
        yield _of(f"approximate minus exact, {model}", gap, Region(high=self.thresholds.gap))
        near = Region.within(self.thresholds.closed_form)
        yield _of(f"approximate minus its closed form, {model}", closed, near)

    def gans_behind(self) -> Iterable[Finding]:
        """Every GAN minus the language model, under the GAN's protocol."""
        reference = self.thresholds.language_model
        if reference is None:
            yield Finding("a language model to compare with (findings.language_model)", absent=ABSENT)
            return
        yield from self._behind({gan: [reference] for gan in self.questions.gans}, self.questions.gans)

    def fair_partners(self) -> Iterable[Finding]:
        """The Recurrent GAN minus networks that were given as short windows."""
        noisy = self.questions.noisy
        yield from self._behind(dict.fromkeys(noisy, self.questions.networks), noisy)

    def deterioration(self) -> Iterable[Finding]:
        """After all of adversarial training minus the language model it started from."""
        arms = self.questions.arms
        yield from self._behind(
            {gan: [start] for gan, start in arms.items()}, dict.fromkeys(arms, self.questions.protocol)
        )

    def _behind(self, pairs: dict[str, list[str]], protocols: dict[str, str]) -> Iterable[Finding]:
        """Paired differences, of which the claim says that they are above the margin."""
        region = Region(low=self.thresholds.margin)
        if not pairs:
            yield Finding("a generator of this kind", absent=ABSENT)
        for model, other in ((model, other) for model, others in pairs.items() for other in others):
            subject = f"{model} minus {other}, {protocols[model]}"
            sides = [self.results.rows.get(name) for name in (model, other)]
            if any(side is None for side in sides):
                missing = [name for name, side in zip((model, other), sides, strict=True) if side is None]
                yield Finding(subject, absent=ABSENT, note=f"no result of {' and '.join(missing)}")
                continue
            (ours, first), (theirs, second) = (best(side, protocols[model]) for side in sides)
            yield _of(subject, difference(ours, theirs, self.questions.level), region, f"{first} - {second}")

    def sample_quality(self) -> Iterable[Finding]:
        """Share of word n-grams of the samples that occur in the test part, minus the language model's."""
        if not self.questions.writers:
            yield Finding("samples of a generator after adversarial training", absent=ABSENT)
        for model, start in self.questions.writers.items():
            if model not in self.results.scores or start not in self.results.scores:
                yield Finding(f"samples of {model} and of {start}", absent=ABSENT)
                continue
            scores = (self.results.scores[name]["in_test"] for name in (model, start))
            for ours, theirs in zip(*scores, strict=True):
                yield self._quality(f"%-IN-TEST-{ours['order']} of {model} minus {start}", ours, theirs)

    def _quality(self, subject: str, ours: dict, theirs: dict) -> Finding:
        """The two sets of samples are independent, so their squared standard errors add.

        An error of zero means that nothing was found to vary, not that the share is known for sure.
        """
        if ours["share"] is None or theirs["share"] is None:
            return Finding(subject, absent=ABSENT, note="samples are shorter than the n-grams")
        value = 100 * (ours["share"] - theirs["share"])
        errors = [score["standard_error"] or 0.0 for score in (ours, theirs)]
        error = 100 * math.hypot(*errors) or math.nan
        half = NormalDist().inv_cdf(0.5 + self.questions.level / 2) * error
        region = Region(high=-100 * self.thresholds.quality)
        return Finding(subject, value, value - half, value + half, region, POINTS)

    def claims(self) -> list[Claim]:
        """All of them, in the paper's order."""
        named = asdict(self.thresholds)
        return [Claim(title.format(**named), paper, tuple(judge(self))) for title, paper, judge in PAPER]


PAPER: tuple[tuple[str, str, Callable[[Judge], Iterable[Finding]]], ...] = (
    (
        "The bound asks for millions of draws",
        "N > ln(2|V|/ε)/(2γ²) is 4.3 million for 27 characters and 8.1 million for 50,000 words.",
        Judge.bound,
    ),
    (
        "{draws:,} draws are enough by the rule of Figure 2",
        "the estimate changes by less than γ' = 0.001 from N > 1600 on, for both of its models.",
        Judge.enough_draws,
    ),
    (
        "Longer windows than {window} hurt the Recurrent GAN",
        "its windows of 7 characters were tuned on validation, because longer ones made it worse.",
        Judge.longer_windows,
    ),
    (
        "LeakGAN performs worse",
        "LeakGAN performed worse than the other models; there is no number.",
        Judge.leakgan,
    ),
    (
        "The numbers of Table 1",
        "1.85 for the pre-trained language model, 1.99 after adversarial training, 3.31 for the Recurrent "
        "GAN, 4.75 for the uniform distribution.",
        Judge.reproduced,
    ),
    (
        "Approximate bits are close to exact ones",
        "1.95 instead of 1.85 and 2.08 instead of 1.99, from 2,000 draws.",
        Judge.approximation,
    ),
    (
        "GANs are worse than language models",
        "1.85 to 3.31 bits for GANs, 1.19 to 1.40 for language models of the time.",
        Judge.gans_behind,
    ),
    (
        "The Recurrent GAN is worse than SeqGAN and the language model SeqGAN starts from",
        "3.31 bits in windows of 7, beside 1.99 and 1.85 in windows of 1,000. Here all windows are alike.",
        Judge.fair_partners,
    ),
    (
        "Adversarial training makes bits worse",
        "1.99 after full adversarial training, 1.85 before it.",
        Judge.deterioration,
    ),
    (
        "Adversarial training lowers the quality of samples",
        "three samples each in Table 2; there is no number. Press et al. score samples by %-IN-TEST-n.",
        Judge.sample_quality,
    ),
)


def _each(
    found: dict, asked: Iterable[str], what: str, judge: Callable[..., Iterable[Finding]]
) -> Iterable[Finding]:
    """What `judge` finds in each result that was asked for; a gap is a finding without a number."""
    names = list(asked)
    if not names:
        yield Finding(what, absent=ABSENT)
    for name in names:
        if name in found:
            yield from judge(name, found[name])
        else:
            yield Finding(f"{what}: {name}", absent=ABSENT)


def _of(subject: str, compared: Interval | None, region: Region, note: str = "") -> Finding:
    """From a paired difference; there is none where the two sides share no text."""
    if compared is None:
        return Finding(subject, absent=ABSENT, note="the two share no protocol or no blocks")
    return Finding(subject, compared.mean, compared.low, compared.high, region, note=note)
