import numpy as np
import pandas as pd
import pytest

from ganlm import tables
from ganlm.comparison import arm_points, pairs, ranked, standings
from ganlm.intervals import Blocks, paired
from ganlm.measurement import Row
from ganlm.summary import summarise

RNG = np.random.default_rng(5)
HARD = RNG.normal(0, 30, 40)


def frame(totals, protocol="window-10", estimator="exact", never_hit=0):
    rows = [
        Row(protocol, "sample", estimator, 0, "bits", b, 100, t, 0.0, 0.0, never_hit)
        for b, t in enumerate(totals)
    ]
    return pd.DataFrame(rows, columns=Row._fields)


def test_an_arm_is_compared_with_where_it_started():
    """The text moves both by ±0.3 bits per block, adversarial training by 0.05 ± 0.01."""
    change = RNG.normal(5, 1, 40)
    other = frame(RNG.normal(900, 1, 40), "carried")
    rows = {
        "lm": pd.concat([frame(300 + HARD), other]),
        "arm-e4": pd.concat([frame(300 + HARD + change), other]),
    }
    summaries = {name: {"results": summarise(table, 0.9)} for name, table in rows.items()}
    found = arm_points("arm", {0: "lm", 4: "arm-e4"}, summaries, rows, "window-10").set_index(
        ["kind", "epoch"]
    )
    assert found.loc[("bits", 0), "mean"] == pytest.approx((300 + HARD).mean() / 100)
    assert found.loc[("difference", 4), "mean"] == pytest.approx(change.mean() / 100)
    assert found.loc[("difference", 0), ["mean", "low", "high"]].tolist() == [0, 0, 0]
    width = found["high"] - found["low"]
    assert width[("difference", 4)] < width[("bits", 4)] / 5
    assert set(found["arm"]) == {"arm"}


def four_models():
    """Bits per token 2, 2.1, 2.104 and 3, the text alike for all, each with noise of its own."""
    means = {"good": 200, "fair": 210, "alike": 210.4, "bad": 300}
    return {name: frame(mean + HARD + RNG.normal(0, 0.9, 40)) for name, mean in means.items()}


def test_every_pair_is_the_paired_interval_of_its_blocks():
    rows = four_models()
    found = pairs(rows, "window-10", 0.95).set_index(["model", "minus"])
    assert len(found) == 6
    for (worse, better), pair in found.iterrows():
        sides = [
            Blocks(rows[name]["total"], rows[name]["tokens"], rows[name]["block"]) for name in (worse, better)
        ]
        alone, together = paired(*sides, 0.95), paired(*sides, 1 - 0.05 / 6)
        assert [pair["mean"], pair["low"], pair["high"]] == pytest.approx([alone.mean, alone.low, alone.high])
        assert pair["alone"] == (alone.low > 0 or alone.high < 0)
        assert pair["together"] == (together.low > 0 or together.high < 0)
    assert (found["mean"] >= 0).all(), "the worse of two comes first"
    assert found.loc[("bad", "good"), "together"]


def test_a_pair_may_differ_alone_and_not_among_many():
    """A t statistic of 2.5 on 39 degrees of freedom: p is 0.017, which six pairs do not allow."""
    noise = RNG.normal(0, 1, 40)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    rows = four_models()
    rows["alike"] = rows["fair"].assign(total=rows["fair"]["total"] + noise + 2.5 / 40**0.5)
    pair = pairs(rows, "window-10", 0.95).set_index(["model", "minus"]).loc[("alike", "fair")]
    assert (pair["alone"], pair["together"]) == (True, False)


def test_pairs_stay_within_a_protocol():
    rows = four_models()
    rows["good"] = pd.concat([rows["good"], frame(900 + HARD, "carried")])
    rows["elsewhere"] = frame(100 + HARD, "carried")
    found = pairs(rows, "window-10", 0.95)
    assert "elsewhere" not in {*found["model"], *found["minus"]}
    (only,) = pairs(rows, "carried", 0.95).itertuples()
    assert (only.model, only.minus, only.mean) == ("good", "elsewhere", pytest.approx(8))


def test_infinite_bits_are_compared_as_far_as_they_can_be():
    rows = {name: frame(total + HARD) for name, total in (("finite", 200), ("never", 210), ("neither", 220))}
    for name in ("never", "neither"):
        rows[name].loc[3, "total"] = np.inf
    found = pairs(rows, "window-10", 0.95).set_index(["model", "minus"])
    assert found.loc[("never", "finite"), "mean"] == np.inf
    assert found.loc[("never", "finite"), "alone"]
    assert np.isnan(found.loc[("neither", "never"), "mean"])
    assert not found.loc[("neither", "never"), "alone"]
    shown = tables.pairs(found.reset_index()).set_index(["Model", "Minus"])
    assert shown.loc[("neither", "never"), ["Bits", "Interval", "Tokens"]].tolist() == ["none", "", ""]


def test_a_pair_says_whose_draws_were_too_few():
    rows = {"exact": frame(200 + HARD)}
    rows |= {f"drawn-{n}": frame(200 + 50 * n + HARD, estimator="harmonic", never_hit=n) for n in range(1, 3)}
    shown = tables.pairs(pairs(rows, "window-10", 0.95)).set_index(["Model", "Minus"])
    assert shown.loc[("drawn-1", "exact"), "Bits"] == "≥ +0.5000"
    assert shown.loc[("drawn-2", "drawn-1"), "Bits"] == "~ +0.5000"
    assert shown.loc[("drawn-2", "exact"), "Estimators"] == "harmonic - exact"
    assert shown.loc[("drawn-2", "exact"), "Tokens"] == "4,000"


def test_a_standing_is_the_most_exact_estimate():
    rows = {
        "known": pd.concat(
            [frame(200 + HARD, estimator="harmonic"), frame(210 + HARD), frame(90 + HARD, "carried")]
        ),
        "noisy": pd.concat([frame(150 + HARD, estimator=name) for name in ("harmonic", "mean-softmax")]),
        "drawn": frame(300 + HARD, estimator="harmonic", never_hit=2),
    }
    summaries = {name: {"results": summarise(table, 0.9)} for name, table in rows.items()}
    found = ranked(standings(summaries), ["window-10", "window-7", "carried"])
    assert found["model"].tolist() == ["noisy", "known", "drawn", "known"]
    assert found["protocol"].tolist() == ["window-10"] * 3 + ["carried"]
    assert found["estimator"].tolist() == ["mean-softmax", "exact", "harmonic", "exact"]
    assert found["mean"].tolist() == pytest.approx([m + HARD.mean() / 100 for m in (1.5, 2.1, 3.0, 0.9)])
    assert found["never_hit_share"].tolist() == [0, 0, 0.02, 0]
