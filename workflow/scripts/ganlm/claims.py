"""Each claim of Tevet et al. 2019 against the result files of a run; `paper` has their order and words."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import pandas as pd

from ganlm.evidence import Questions, Results, Rise, Sides, Thresholds, each, of_difference, of_rise
from ganlm.findings import ABSENT, CONTROL, NOT_YET, NOTE, Finding, Region
from ganlm.sample_size import hoeffding_draws
from ganlm.summary import best, chosen, difference

POINTS = "{:+.2f} percentage points"
DRAWS = "{:,.0f} draws"
TOKENS = "{:.0f} tokens"
# The bound's examples in the paper: size of the alphabet -> draws, at one accuracy and one chance to miss it.
EXAMPLES = {27: 4.3e6, 50_000: 8.1e6}
GAMMA, EPSILON = 1e-3, 1e-2
ROUNDING = 0.01


@dataclass(frozen=True)
class Judge:
    """One run against the paper; each method is a claim's findings."""

    results: Results
    questions: Questions
    thresholds: Thresholds

    def bound(self) -> Iterable[Finding]:
        """Hoeffding's bound for the paper's two examples; beside them, for this run's rule."""
        for alphabet, published in EXAMPLES.items():
            value = float(hoeffding_draws(GAMMA, EPSILON, alphabet))
            near = Region((1 - ROUNDING) * published, (1 + ROUNDING) * published)
            subject = f"draws that the bound asks for, |V| = {alphabet:,}, γ = {GAMMA:g}, ε = {EPSILON:g}"
            yield Finding(subject, value, value, value, near, DRAWS)
        rules = (self.results.draws.get(model) for model in self.questions.choose_n)
        asked = {(rule["threshold"], float(rule["bounds"]["hoeffding"])) for rule in rules if rule}
        for threshold, value in sorted(asked):
            subject = f"draws that the bound asks for with this run's alphabet and rule, γ = {threshold:g}"
            yield Finding(subject, value, value, value, shape=DRAWS, beside=NOTE)

    def enough_draws(self) -> Iterable[Finding]:
        """From where on the curve is below γ': at first, and for good. Beyond its end nothing is known."""
        return each(self.results.draws, self.questions.choose_n, "choice of N", self._enough_draws)

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

        A rise of one estimate alone may be its own error, which grows with the window.
        """
        return each(self.results.sweep, self.questions.swept, "sweep over windows", self._longer_windows)

    def _longer_windows(self, model: str, rows: pd.DataFrame) -> Iterable[Finding]:
        short, region = self.thresholds.window, Region(low=self.thresholds.margin)
        longer = [window for window in _windows(rows) if window > short]
        if not longer:
            yield Finding(f"windows of {short} and longer ones, {model}", absent=ABSENT)
        for window in longer:
            subject = f"windows of {window} minus windows of {short}, {model}"
            yield of_rise(subject, self._rise(rows, short, window), region)
        if model in self.results.windows and model in self.results.validation:
            yield self._validation(model)

    def _rise(self, rows: pd.DataFrame, window: int, other: int) -> Rise | None:
        """From one window to another; both are read with the same draws."""
        first, second = (Sides.of(rows, f"window-{length}") for length in (window, other))
        return Rise.between(second, first, self.questions.level, same_draws=True)

    def _validation(self, model: str) -> Finding:
        """The windows that validation prefers by either estimate, and those it cannot tell from the first."""
        found, rows = self.results.windows[model], self.results.validation[model]
        rises = {window: self._rise(rows, found["window"], window) for window in _windows(rows)}
        equals = [window for window, rise in rises.items() if rise is None or not rise.least.low > 0]
        return Finding(
            f"window that validation chooses by the published estimate, {model}",
            found["window"],
            min(equals),
            max(equals),
            Region(high=self.thresholds.window + 1),
            TOKENS,
            f"by the estimate from below: {found['window_from_below']}; in brackets, the shortest and the "
            "longest that paired differences, from both sides, cannot tell from it",
        )

    def leakgan(self) -> Iterable[Finding]:
        """There is no LeakGAN here yet."""
        yield Finding("LeakGAN", absent=NOT_YET)

    def reproduced(self) -> Iterable[Finding]:
        """Models that stand for a row of the paper's Table 1, each minus the published number."""
        asked = self.questions.reproduced
        return each(self.results.rows, asked, "model with a published result", self._reproduced)

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
        near = Region.within(self.thresholds.reproduced)
        yield self._placed(model, of_difference(subject, compared, near))

    def approximation(self) -> Iterable[Finding]:
        """The published estimate minus exact bits, and minus its expectation in closed form."""
        return each(self.results.rows, self.questions.gaps, "model with exact bits", self._approximation)

    def _approximation(self, model: str, rows: pd.DataFrame) -> Iterable[Finding]:
        draws, level = self.thresholds.draws, self.questions.level
        select = partial(chosen, rows, self.questions.protocol)
        drawn, expected = select("plug-in", draws), select("expected-plug-in", draws)
        exact = select("exact")
        if drawn is None or expected is None or exact is None:
            yield Finding(f"approximate bits of {model} from {draws:,} draws", absent=ABSENT)
            return
        gap, closed = difference(drawn, exact, level), difference(drawn, expected, level)
        yield of_difference(f"approximate minus exact, {model}", gap, Region(high=self.thresholds.gap))
        near = Region.within(self.thresholds.closed_form)
        yield of_difference(f"approximate minus its closed form, {model}", closed, near)

    def gans_behind(self) -> Iterable[Finding]:
        """Every GAN minus the language model, under the GAN's protocol."""
        asked = self.questions
        if asked.gans and not asked.opponents:
            yield Finding("a language model to compare with (findings.language_model)", absent=ABSENT)
            return
        yield from self._behind(asked.opponents.items(), asked.gans)

    def fair_partners(self) -> Iterable[Finding]:
        """The Recurrent GAN minus SeqGAN and the language model it starts from, given as short windows."""
        noisy = self.questions.noisy
        yield from self._behind([(gan, other) for gan in noisy for other in self.questions.partners], noisy)

    def deterioration(self) -> Iterable[Finding]:
        """After all of adversarial training minus the language model it started from."""
        arms = self.questions.arms
        yield from self._behind(arms.items(), dict.fromkeys(arms, self.questions.protocol))

    def _behind(self, pairs: Iterable[tuple[str, str]], protocols: dict[str, str]) -> Iterable[Finding]:
        """Paired differences, of which the claim says that they are above the margin."""
        pairs = list(pairs)
        yield from self._unpublished(model for model, _ in pairs)
        for model, other in pairs:
            yield self._placed(model, self._minus(model, other, protocols[model]))

    def _minus(self, model: str, other: str, protocol: str) -> Finding:
        subject = f"{model} minus {other}, {protocol}"
        missing = [name for name in (model, other) if name not in self.results.rows]
        if missing:
            return Finding(subject, absent=ABSENT, note=f"no result of {' and '.join(missing)}")
        ours, theirs = (Sides.of(self.results.rows[name], protocol) for name in (model, other))
        rise = Rise.between(ours, theirs, self.questions.level)
        return of_rise(subject, rise, Region(low=self.thresholds.margin))

    def sample_quality(self) -> Iterable[Finding]:
        """Share of word n-grams of the samples that occur in the test part, minus the language model's."""
        yield from self._unpublished(self.questions.arms)
        for model, start in self.questions.arms.items():
            for finding in self._samples(model, start):
                yield self._placed(model, finding)

    def _samples(self, model: str, start: str) -> Iterable[Finding]:
        if model not in self.results.scores or start not in self.results.scores:
            yield Finding(f"samples of {model} and of {start}", absent=ABSENT)
            return
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

    def _placed(self, model: str, finding: Finding) -> Finding:
        """Beside the claim if the model is a control."""
        return replace(finding, beside=CONTROL) if model in self.questions.controls else finding

    def _unpublished(self, models: Iterable[str]) -> Iterable[Finding]:
        """A gap where none of the models trains as the published code does: controls cannot stand in."""
        if set(models) <= set(self.questions.controls):
            yield Finding("a generator that trains as the published code does", absent=ABSENT)


def _windows(rows: pd.DataFrame) -> list[int]:
    """Shortest first."""
    return sorted(int(name.removeprefix("window-")) for name in rows["protocol"].unique())
