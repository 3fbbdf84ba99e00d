"""Verdicts where the answer is known: by the rule alone, and from constructed results."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from ganlm.claims import PAPER, Judge, Questions, Results, Thresholds
from ganlm.findings import (
    ABSENT,
    FAILS,
    HOLDS,
    NOT_YET,
    UNDECIDED,
    Claim,
    Finding,
    Region,
    to_frame,
    to_markdown,
)
from ganlm.measurement import Row

BLOCKS = 30
RNG = np.random.default_rng(7)
THRESHOLDS = Thresholds(
    draws=2000,
    window=7,
    margin=0.0,
    gap=0.15,
    closed_form=0.02,
    reproduced=0.05,
    quality=0.0,
    language_model="lm",
)
QUESTIONS = Questions(
    protocol="window-1000",
    level=0.95,
    max_draws=3000,
    choose_n=["lm"],
    gaps=["lm"],
    networks=["lm"],
    gans={"gan": "window-1000"},
    noisy={"rgan": "window-7"},
    swept=["rgan"],
    arms={"gan-last": "lm"},
    writers={"gan": "lm"},
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


def points(**bits: float) -> dict:
    found = [
        {"window": int(window[1:]), "mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        for window, mean in bits.items()
    ]
    return {"window": min(found, key=lambda point: point["mean"])["window"], "points": found}


def sweep(mean_softmax: float, harmonic: float) -> pd.DataFrame:
    """Windows of 7, and longer ones that cost so many more bits by two estimates."""
    return pd.concat(
        [
            rows(3.3, "window-7", "mean-softmax"),
            rows(3.2, "window-7", "harmonic"),
            rows(3.3 + mean_softmax, "window-10", "mean-softmax"),
            rows(3.2 + harmonic, "window-10", "harmonic"),
        ]
    )


RESULTS = Results(
    rows={
        "lm": language_model(),
        "gan": rows(1.99),
        "gan-last": rows(1.99),
        "rgan": rows(3.31, "window-7", "mean-softmax"),
    },
    draws={"lm": rule(1580, 1630)},
    sweep={"rgan": sweep(0.2, 0.1)},
    windows={"rgan": points(w7=3.3, w10=3.5)},
    scores={"lm": scores(0.6, 0.01), "gan": scores(0.5, 0.01)},
    published={"seqgan-pretrained": 1.85},
)


def judged(claim: str, results: Results = RESULTS, questions: Questions = QUESTIONS) -> list[str]:
    judge = next(judge for _, _, judge in PAPER if judge.__name__ == claim)
    return [finding.verdict for finding in judge(Judge(results, questions, THRESHOLDS))]


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
    claims = Judge(RESULTS, QUESTIONS, THRESHOLDS).claims()
    assert [claim.verdict for claim in claims] == [
        NOT_YET if "LeakGAN" in claim.title else HOLDS for claim in claims
    ]


def test_a_difference_is_paired():
    """The blocks differ by 0.1 bits; what differs between the models is known to 0.01."""
    (found,) = Judge(RESULTS, QUESTIONS, THRESHOLDS).deterioration()
    assert found.value == pytest.approx(0.14)
    assert found.high - found.low < 0.03


@pytest.mark.parametrize(
    ("claim", "changes", "verdicts"),
    [
        ("deterioration", {"rows": RESULTS.rows | {"gan-last": rows(1.80)}}, [FAILS]),
        ("deterioration", {"rows": RESULTS.rows | {"gan-last": rows(1.85, noise=0.3)}}, [UNDECIDED]),
        ("gans_behind", {"rows": RESULTS.rows | {"gan": rows(1.2)}}, [FAILS]),
        ("fair_partners", {"rows": RESULTS.rows | {"rgan": rows(2.5, "window-7", "mean-softmax")}}, [FAILS]),
        ("approximation", {"rows": {"lm": language_model(gap=0.3)}}, [FAILS, FAILS]),
        ("approximation", {"rows": {"lm": language_model(gap=0.3, expected=0.3)}}, [FAILS, HOLDS]),
        ("reproduced", {"rows": {"lm": rows(2.05)}}, [FAILS]),
        ("enough_draws", {"draws": {"lm": rule(1580, None)}}, [UNDECIDED]),
        ("enough_draws", {"draws": {"lm": rule(None, None)}}, [FAILS]),
        ("longer_windows", {"windows": {"rgan": points(w7=3.5, w10=3.3)}}, [HOLDS, HOLDS, FAILS]),
        ("longer_windows", {"windows": {"rgan": points(w7=3.3, w10=3.35)}}, [HOLDS, HOLDS, UNDECIDED]),
        ("longer_windows", {"sweep": {"rgan": sweep(0.2, -0.1)}}, [HOLDS, FAILS, HOLDS]),
        ("sample_quality", {"scores": {"lm": scores(0.5, 0.01), "gan": scores(0.6, 0.01)}}, [FAILS]),
        ("sample_quality", {"scores": {"lm": scores(0.0, 0.0), "gan": scores(0.0, 0.0)}}, [UNDECIDED]),
    ],
)
def test_a_claim_that_is_false_is_found_out(claim: str, changes: dict, verdicts: list[str]):
    assert judged(claim, replace(RESULTS, **changes)) == verdicts


def test_what_a_run_does_not_contain_has_no_number():
    nothing = Results({}, {}, {}, {}, {}, {})
    for claim in Judge(nothing, QUESTIONS, THRESHOLDS).claims():
        assert claim.verdict in (ABSENT, NOT_YET)
        assert {finding.number for finding in claim.findings} == {""}


def test_what_nobody_asked_for_is_not_in_the_run():
    asked = replace(
        QUESTIONS, choose_n=[], gaps=[], gans={}, noisy={}, swept=[], arms={}, writers={}, reproduced={}
    )
    claims = Judge(RESULTS, asked, THRESHOLDS).claims()
    assert {claim.verdict for claim in claims} == {ABSENT, NOT_YET}


def test_text_and_table_say_the_same():
    claims = Judge(RESULTS, QUESTIONS, THRESHOLDS).claims()
    text, frame = to_markdown(claims, "A caption."), to_frame(claims)
    assert text.count("\n- **") == len(frame)
    for row in frame.itertuples():
        assert any(f"**{row.Verdict}**" in line and row.Value in line for line in text.splitlines())
    assert [claim.title for claim in claims] == [title.split(". ", 1)[1] for title in frame["Claim"].unique()]


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
