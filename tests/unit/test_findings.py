"""Verdicts where the answer is known: by the rule alone, and from constructed results."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from ganlm.claims import Judge
from ganlm.evidence import Questions, Results, Thresholds
from ganlm.findings import (
    ABSENT,
    CONTROL,
    FAILS,
    HOLDS,
    NOT_YET,
    NOTE,
    UNDECIDED,
    Claim,
    Finding,
    Region,
    to_frame,
    to_markdown,
    together,
)
from ganlm.measurement import Row
from ganlm.paper import PAPER, claims

BLOCKS = 30
RNG = np.random.default_rng(7)
THRESHOLDS = Thresholds(
    draws=2000,
    window=7,
    margin=0.01,
    gap=0.15,
    closed_form=0.02,
    reproduced=0.05,
    quality=0.0,
)
QUESTIONS = Questions(
    protocol="window-1000",
    level=0.95,
    max_draws=3000,
    choose_n=["lm"],
    gaps=["lm"],
    gans={"gan": "window-1000"},
    opponents={"gan": "other"},
    noisy={"rgan": "window-7"},
    partners=["lm"],
    swept=["rgan"],
    arms={"gan-last": "lm"},
    controls=["odd", "odd-last"],
    reproduced={"lm": ("window-1000", "seqgan-pretrained")},
)
HARDNESS = RNG.normal(0, 0.1, BLOCKS)


def rows(
    bits: float, protocol: str = "window-1000", estimator: str = "exact", draws: int = 0, noise: float = 0.01
):
    """Blocks of 100 tokens with these bits per token on average, as hard as the text is."""
    own = RNG.normal(0, noise, BLOCKS)
    totals = 100 * (bits + HARDNESS - HARDNESS.mean() + own - own.mean())
    row = Row(protocol, "sample", estimator, draws, "bits", 0, 100, 0.0, 0.0, 0.0, 0)._asdict()
    return pd.DataFrame([row | {"block": block, "total": total} for block, total in enumerate(totals)])


def language_model(gap: float = 0.1, expected: float = 0.1) -> pd.DataFrame:
    return pd.concat(
        [
            rows(1.85),
            rows(2.60, "window-7"),
            rows(1.85 + gap, estimator="plug-in", draws=2000),
            rows(1.85 + expected, estimator="expected-plug-in", draws=2000),
        ]
    )


def scores(share: float, error: float | None) -> dict:
    return {"in_test": [{"order": 1, "share": share, "standard_error": error}]}


def rule(first: int | None, last: int | None) -> dict:
    bounds = {"hoeffding": 4_297_078}
    return {"threshold": 0.001, "bounds": bounds, "crossing": 1585.0, "first_below": first, "draws": last}


def sweep(gap: float = 0.0, **bits: float) -> pd.DataFrame:
    """Bits by the mean softmax at each window; the harmonic estimate is `gap` below it."""
    return pd.concat(
        rows(mean - below, f"window-{window[1:]}", estimator)
        for window, mean in bits.items()
        for estimator, below in (("mean-softmax", 0.0), ("harmonic", gap))
    )


def latent(above: float, below: float) -> pd.DataFrame:
    """A generator with noise in windows of 7, by the estimate that errs upwards and the one downwards."""
    return pd.concat([rows(above, "window-7", "mean-softmax"), rows(below, "window-7", "harmonic")])


def chooses(window: int, from_below: int) -> dict:
    return {"window": window, "window_from_below": from_below}


RESULTS = Results(
    rows={
        "lm": language_model(),
        "other": rows(1.40),
        "gan": rows(1.90),
        "gan-last": rows(1.99),
        "rgan": latent(3.31, 3.20),
    },
    draws={"lm": rule(1580, 1630)},
    sweep={"rgan": sweep(0.1, w7=3.3, w10=3.5)},
    validation={"rgan": sweep(0.1, w5=3.5, w7=3.3, w10=3.5)},
    windows={"rgan": chooses(7, 7)},
    scores={"lm": scores(0.6, 0.01), "gan-last": scores(0.5, 0.01)},
    published={"seqgan-pretrained": 1.85},
)


def found(claim: str, results: Results = RESULTS, questions: Questions = QUESTIONS) -> list[Finding]:
    judge = next(judge for _, _, judge in PAPER if judge.__name__ == claim)
    return list(judge(Judge(results, questions, THRESHOLDS)))


def judged(claim: str, results: Results = RESULTS, questions: Questions = QUESTIONS) -> list[str]:
    return [finding.verdict for finding in found(claim, results, questions)]


@pytest.mark.parametrize(
    ("low", "high", "region", "verdict"),
    [
        (0.1, 0.2, Region(low=0), HOLDS),
        (-0.2, -0.1, Region(low=0), FAILS),
        (-0.1, 0.1, Region(low=0), UNDECIDED),
        (0.0, 0.0, Region(low=0), FAILS),
        (0.05, 0.1, Region(high=0.15), HOLDS),
        (0.16, 0.2, Region(high=0.15), FAILS),
        (-0.01, 0.01, Region.within(0.02), HOLDS),
        (-0.01, 0.03, Region.within(0.02), UNDECIDED),
        (-0.05, -0.03, Region.within(0.02), FAILS),
        (-inf, inf, Region.within(0.02), UNDECIDED),
        (nan, nan, Region(low=0), UNDECIDED),
    ],
)
def test_a_verdict_follows_from_interval_and_region(low: float, high: float, region: Region, verdict: str):
    assert region.verdict(low, high) == verdict


def test_every_claim_holds_in_a_run_that_is_as_the_paper_says():
    judged = claims(Judge(RESULTS, QUESTIONS, THRESHOLDS))
    assert [claim.verdict for claim in judged] == [
        NOT_YET if "LeakGAN" in claim.title else HOLDS for claim in judged
    ]


def test_a_difference_is_paired():
    """The blocks differ by 0.1 bits; what differs between the models is known to 0.01."""
    (finding,) = found("deterioration")
    assert finding.value == pytest.approx(0.14)
    assert finding.high - finding.low < 0.03


@pytest.mark.parametrize(
    ("claim", "changes", "verdicts"),
    [
        ("deterioration", {"rows": RESULTS.rows | {"gan-last": rows(1.80)}}, [FAILS]),
        ("deterioration", {"rows": RESULTS.rows | {"gan-last": rows(1.85, noise=0.3)}}, [UNDECIDED]),
        ("deterioration", {"rows": RESULTS.rows | {"gan-last": rows(1.855, noise=0.001)}}, [FAILS]),
        ("gans_behind", {"rows": RESULTS.rows | {"gan": rows(1.2)}}, [FAILS]),
        ("fair_partners", {"rows": RESULTS.rows | {"rgan": latent(2.5, 2.4)}}, [FAILS]),
        ("fair_partners", {"rows": RESULTS.rows | {"rgan": latent(2.9, 2.5)}}, [UNDECIDED]),
        ("fair_partners", {"rows": RESULTS.rows | {"rgan": rows(3.3, "window-7", "mean-softmax")}}, [ABSENT]),
        ("approximation", {"rows": {"lm": language_model(gap=0.3)}}, [FAILS, FAILS]),
        ("approximation", {"rows": {"lm": language_model(gap=0.3, expected=0.3)}}, [FAILS, HOLDS]),
        ("reproduced", {"rows": {"lm": rows(2.05)}}, [FAILS]),
        ("enough_draws", {"draws": {"lm": rule(1580, None)}}, [UNDECIDED]),
        ("enough_draws", {"draws": {"lm": rule(None, None)}}, [FAILS]),
        ("longer_windows", {"sweep": {"rgan": sweep(0.3, w7=3.3, w10=3.5)}}, [UNDECIDED, HOLDS]),
        ("longer_windows", {"sweep": {"rgan": sweep(0.1, w7=3.3, w10=3.1)}}, [FAILS, HOLDS]),
        ("longer_windows", {"sweep": {"rgan": sweep(0.1, w5=3.3, w7=3.3)}}, [ABSENT, HOLDS]),
        (
            "longer_windows",
            {"windows": {"rgan": chooses(10, 10)}, "validation": {"rgan": sweep(0.1, w7=3.5, w10=3.3)}},
            [HOLDS, FAILS],
        ),
        ("longer_windows", {"validation": {"rgan": sweep(0.1, w7=3.3, w10=3.35)}}, [HOLDS, UNDECIDED]),
        ("sample_quality", {"scores": {"lm": scores(0.6, 0.01), "gan": scores(0.5, 0.01)}}, [ABSENT]),
        ("sample_quality", {"scores": {"lm": scores(0.5, 0.01), "gan-last": scores(0.6, 0.01)}}, [FAILS]),
        ("sample_quality", {"scores": {"lm": scores(0.0, 0.0), "gan-last": scores(0.0, 0.0)}}, [UNDECIDED]),
    ],
)
def test_a_claim_that_is_false_is_found_out(claim: str, changes: dict, verdicts: list[str]):
    assert judged(claim, replace(RESULTS, **changes)) == verdicts


def test_what_a_run_does_not_contain_has_no_number():
    nothing = Results({}, {}, {}, {}, {}, {}, {})
    bound, *others = claims(Judge(nothing, QUESTIONS, THRESHOLDS))
    assert bound.verdict == HOLDS
    for claim in others:
        assert claim.verdict in (ABSENT, NOT_YET)
        assert {finding.number for finding in claim.findings} == {""}


def test_what_nobody_asked_for_is_not_in_the_run():
    about_models = set(Questions.__dataclass_fields__) - {"protocol", "level", "max_draws"}
    asked = {name: type(getattr(QUESTIONS, name))() for name in about_models}
    _, *others = claims(Judge(RESULTS, replace(QUESTIONS, **asked), THRESHOLDS))
    assert {claim.verdict for claim in others} == {ABSENT, NOT_YET}


def test_the_bound_is_that_of_the_papers_examples_and_each_rule_of_the_run_is_stated_once():
    asked = replace(QUESTIONS, choose_n=["lm", "gan"])
    findings = found("bound", replace(RESULTS, draws={"lm": rule(1, 1), "gan": rule(1, 1)}), asked)
    assert [finding.verdict for finding in findings] == [HOLDS, HOLDS, NOTE]
    assert [round(finding.value / 1e5) for finding in findings] == [43, 81, 43]
    assert findings[0].sentence.endswith("the claim needs a value between 4,257,000 and 4,343,000.")
    assert "needs" not in findings[2].sentence


@pytest.mark.parametrize("claim", ["gans_behind", "deterioration", "sample_quality"])
def test_controls_are_shown_and_have_no_say(claim: str):
    """The control is better than what it is compared with, so with a say it would spoil the claim."""
    results = replace(
        RESULTS,
        rows=RESULTS.rows | {"odd": rows(1.2), "odd-last": rows(1.2)},
        scores=RESULTS.scores | {"odd-last": scores(0.9, 0.01)},
    )
    both = replace(
        QUESTIONS,
        gans=QUESTIONS.gans | {"odd": "window-1000"},
        opponents=QUESTIONS.opponents | {"odd": "other"},
        arms=QUESTIONS.arms | {"odd-last": "lm"},
    )
    verdicts = judged(claim, results, both)
    assert verdicts == [HOLDS, f"{CONTROL}: {FAILS}"]
    assert together(verdicts) == HOLDS
    alone = replace(
        both, gans={"odd": "window-1000"}, opponents={"odd": "other"}, arms={"odd-last": "lm"}, partners=[]
    )
    verdicts = judged(claim, results, alone)
    assert verdicts == [ABSENT, f"{CONTROL}: {FAILS}"]
    assert together(verdicts) == ABSENT


def test_gans_need_a_language_model_to_be_compared_with():
    (finding,) = found("gans_behind", questions=replace(QUESTIONS, opponents={}))
    assert finding.verdict == ABSENT
    assert "findings.language_model" in finding.subject


def test_a_rise_is_the_least_that_estimates_from_both_sides_allow():
    """Both estimates rise by 0.2, but the truth may lie anywhere between them at either window."""
    finding = found("longer_windows", replace(RESULTS, sweep={"rgan": sweep(0.3, w7=3.3, w10=3.5)}))[0]
    assert finding.value == pytest.approx(-0.1)
    assert finding.low < -0.1
    assert finding.high > 0.5
    assert "harmonic - mean-softmax, so at least; at most +0.5000" in finding.note


def test_both_choices_of_a_window_are_shown_with_those_that_cannot_be_told_from_it():
    results = replace(
        RESULTS,
        validation={"rgan": sweep(0.2, w5=3.9, w7=3.3, w10=3.4, w20=3.6)},
        windows={"rgan": chooses(7, 10)},
    )
    finding = found("longer_windows", results)[-1]
    assert (finding.value, finding.low, finding.high) == (7, 7, 10)
    assert "from below: 10" in finding.note


def test_text_and_table_say_the_same():
    judged = claims(Judge(RESULTS, QUESTIONS, THRESHOLDS))
    text, frame = to_markdown(judged, "A caption."), to_frame(judged)
    assert text.count("\n- **") == len(frame)
    for row in frame.itertuples():
        assert any(f"**{row.Verdict}**" in line and row.Value in line for line in text.splitlines())
    assert [claim.title for claim in judged] == [title.split(". ", 1)[1] for title in frame["Claim"].unique()]


def test_verdicts_that_differ_are_counted():
    findings = (
        Finding("a", 1.0, 0.5, 1.5, Region(low=0)),
        Finding("b", 1.0, 0.5, 1.5, Region(low=0)),
        Finding("c", -1.0, -1.5, -0.5, Region(low=0)),
    )
    assert Claim("t", "p", findings).verdict == "holds (2 of 3), does not hold (1 of 3)"
    assert (
        findings[0].sentence
        == "**holds**: a: +1.0000 bits [+0.5000, +1.5000]; the claim needs a value above 0."
    )
