import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ganlm.intervals import Blocks, interval
from ganlm.measurement import Row
from ganlm.summary import differences, estimator_errors, gaps, summarise

RNG = np.random.default_rng(4)


def frame(totals, protocol="window-10", estimator="exact", blocks=None, **columns):
    """Rows of one estimator, blocks of 100 tokens."""
    blocks = range(len(totals)) if blocks is None else blocks
    row = Row(protocol, "sample", estimator, 0, "bits", 0, 100, 0.0, 0.0, 0.0, 0)._asdict() | columns
    return pd.DataFrame([row | {"block": b, "total": t} for b, t in zip(blocks, totals, strict=True)])


def test_a_mean_has_the_interval_of_its_blocks():
    totals = 200 + RNG.normal(0, 10, 20)
    (result,) = summarise(frame(totals, variance=4.0, drawn=500.0, never_hit=3), 0.95)
    error = totals.std(ddof=1) / 20**0.5 / 100
    assert result["mean"] == pytest.approx(totals.mean() / 100)
    assert result["monte_carlo_se"] == pytest.approx((20 * 4.0) ** 0.5 / 2000)
    assert result["standard_error"] >= error * 0.999
    assert result["text_se"] ** 2 + result["monte_carlo_se"] ** 2 == pytest.approx(
        result["standard_error"] ** 2
    )
    half = (result["high"] - result["low"]) / 2
    assert half >= stats.t.ppf(0.975, 19) * error * 0.999
    assert (result["tokens"], result["draws_per_token"], result["never_hit_share"]) == (2000, 5.0, 0.03)
    assert (result["protocol"], result["estimand"], result["estimator"]) == ("window-10", "sample", "exact")


def test_every_protocol_estimand_estimator_and_number_of_draws_is_reduced_alone():
    kinds = [
        {"protocol": protocol, "estimand": estimand, "estimator": estimator, "draws": draws}
        for protocol in ("window-10", "carried")
        for estimand in ("sample", "argmax")
        for estimator in ("plug-in", "harmonic")
        for draws in (10, 20)
    ]
    rows = pd.concat([frame([100.0 + i, 102.0 + i], **kind) for i, kind in enumerate(kinds)])
    results = summarise(rows.sample(frac=1, random_state=1), 0.9)
    found = {(r["protocol"], r["estimand"], r["estimator"], r["draws"]): r["mean"] for r in results}
    assert found == {tuple(kind.values()): pytest.approx(1.01 + i / 100) for i, kind in enumerate(kinds)}
    assert {r["level"] for r in results} == {0.9}


def test_drawing_noise_that_is_not_known_is_not_stated():
    rows = frame([1.0, 2.0, 3.0], unit="score", variance=np.nan)
    (result,) = summarise(rows, 0.95)
    assert result["monte_carlo_se"] is None
    assert result["text_se"] == result["standard_error"]


def test_draws_that_blocks_share_are_in_the_error_once():
    """What each group added to each block, in any order of rows."""
    totals, added = 200 + RNG.normal(0, 10, 60), RNG.normal(0, 2, (60, 8))
    groups = [frame(added[:, group], estimator="harmonic", group=group + 1) for group in range(8)]
    rows = pd.concat([frame(totals, estimator="harmonic", drawn=500.0, never_hit=3), *groups])
    (result,) = summarise(rows.sample(frac=1, random_state=2), 0.95)
    expected = interval(Blocks(totals, np.full(60, 100), mc_variance=None, shared=(added,)))
    assert result["mean"] == pytest.approx(totals.mean() / 100)
    assert result["standard_error"] == pytest.approx(expected.standard_error)
    assert result["monte_carlo_se"] == pytest.approx(expected.monte_carlo_se)
    assert (result["tokens"], result["draws_per_token"], result["never_hit_share"]) == (6000, 5.0, 0.03)
    base = frame(totals, estimator="exact")
    (difference,) = differences({"ours": rows, "base": base}, "base", 0.95).to_dict("records")
    assert (difference["mean"], difference["tokens"], difference["never_hit"]) == (0, 6000, 180)
    assert difference["high"] == pytest.approx(stats.t.ppf(0.975, 7) * expected.monte_carlo_se)


def test_differences_are_paired_on_common_blocks():
    """What the text does to both cancels: ±5 bits per block, but a difference of 10 ± 1."""
    hard = RNG.normal(0, 500, 30)
    noise = RNG.normal(0, 1, 30)
    rows = {
        "base": frame(300 + hard),
        "ours": frame((310 + hard + noise)[5:25], blocks=range(5, 25)),
    }
    found = differences(rows, "base", 0.95)
    assert found["model"].tolist() == ["ours"]
    (difference,) = found.to_dict("records")
    assert difference["mean"] == pytest.approx((10 + noise[5:25]).mean() / 100)
    assert difference["tokens"] == 2000
    assert difference["high"] - difference["low"] < 0.05
    assert difference["low"] < 0.1 < difference["high"]


def test_differences_do_not_depend_on_the_order_of_rows():
    rows = {"base": frame(RNG.normal(0, 5, 9)), "ours": frame(RNG.normal(0, 5, 9))}
    shuffled = {name: each.sample(frac=1, random_state=3) for name, each in rows.items()}
    pd.testing.assert_frame_equal(differences(rows, "base", 0.95), differences(shuffled, "base", 0.95))


def test_differences_stay_within_a_protocol_and_an_estimand():
    base = pd.concat([frame([1.0, 2.0]), frame([3.0, 5.0], "carried")])
    argmax = frame([9.0, 9.0], estimand="argmax")
    ours = pd.concat(
        [argmax, frame([11.0, 12.0]), frame([2.0, 4.0], "carried"), frame([0.0, 1.0], "window-7")]
    )
    found = differences({"ours": ours, "base": base}, "base", 0.95)
    means = dict(zip(found["protocol"], found["mean"], strict=True))
    assert means == {"window-10": pytest.approx(0.1), "carried": pytest.approx(-0.01)}


def test_the_most_exact_estimate_of_each_side_is_compared():
    base = pd.concat(
        [frame([5.0, 6.0]), frame([7.0, 9.0], estimator="plug-in"), frame([8.0, 8.5], estimator="harmonic")]
    )
    ours = pd.concat([frame([70.0, 90.0], estimator="plug-in"), frame([8.0, 8.0], estimator="harmonic")])
    (difference,) = differences({"base": base, "ours": ours}, "base", 0.95).to_dict("records")
    assert difference["estimators"] == "harmonic - exact"
    assert difference["mean"] == pytest.approx((16 - 11) / 200)
    noisy = pd.concat([ours, frame([9.0, 8.0], estimator="mean-softmax")])
    (difference,) = differences({"base": base, "noisy": noisy}, "base", 0.95).to_dict("records")
    assert difference["estimators"] == "mean-softmax - exact"
    assert difference["mean"] == pytest.approx((17 - 11) / 200)


@pytest.mark.parametrize(
    "ours",
    [
        frame([1.0, 2.0], blocks=[7, 8]),
        frame([1.0, 2.0], "window-7"),
        frame([1.0, 2.0], estimator="plug-in"),
        frame([1.0, 2.0], estimand="argmax"),
    ],
    ids=["other blocks", "other protocol", "only plug-in", "other estimand"],
)
def test_what_cannot_be_compared_is_left_out(ours):
    others = {"base": frame([3.0, 4.0]), "fine": frame([4.0, 5.0])}
    found = differences({"ours": ours} | others, "base", 0.95)
    assert found["model"].tolist() == ["fine"]
    empty = differences({"ours": ours, "base": others["base"]}, "base", 0.95)
    assert len(empty) == 0
    assert list(empty.columns) == list(found.columns)


def result(estimator, mean, draws=0, protocol="window-10", **changes):
    known = {"estimand": "sample", "unit": "bits", "monte_carlo_se": 0.1, "never_hit_share": 0.2}
    return (
        known
        | {"protocol": protocol, "estimator": estimator, "draws": draws, "mean": mean}
        | {"draws_per_token": float(draws)}
        | changes
    )


RESULTS = [
    result("exact", 2.0),
    result("exact", 2.5, protocol="carried"),
    result("exact", 1.0, estimand="mixture-0.1"),
    result("plug-in", 2.4, 100),
    result("expected-plug-in", 2.5, 100, draws_per_token=0.0),
    result("plug-in", 2.25, 50),
    result("expected-plug-in", 2.75, 50, draws_per_token=0.0),
    result("plug-in", 9.0, 100, protocol="carried"),
    result("plug-in", 9.0, 100, estimand="argmax"),
    result("harmonic", 1.99, 100),
    result("expected-harmonic", 1.98, 100, draws_per_token=0.0),
    result("ibs", 2.01, 5000, draws_per_token=17.0),
    result("expected-ibs", 1.97, 5000, draws_per_token=0.0),
    result("brier", 0.3, 100, unit="score"),
]


def test_gaps_are_to_the_exact_bits_of_the_same_protocol():
    found = gaps([{"model": "a", "results": RESULTS}], "window-10")
    assert found.columns.tolist() == ["model", "draws", "expected", "drawn"]
    assert found.to_numpy().tolist() == [
        ["a", 50, 0.75, 0.25],
        ["a", 100, 0.5, pytest.approx(0.4)],
    ]


def test_models_without_exact_bits_have_no_gap():
    drawn = [result("plug-in", 2.4, 100), result("harmonic", 2.0, 100)]
    found = gaps([{"model": "b", "results": drawn}], "window-10")
    assert len(found) == 0
    assert found.columns.tolist() == ["model", "draws", "expected", "drawn"]


def test_errors_of_estimators_are_in_bits_and_of_the_run_s_draws():
    found = estimator_errors({"model": "a", "results": RESULTS}, "window-10")
    assert found["estimator"].tolist() == ["ibs", "plug-in", "harmonic"]
    np.testing.assert_allclose(found["bias"], [-0.03, 0.5, -0.02], atol=1e-12)
    np.testing.assert_allclose(found["error"], [0.01, 0.4, -0.01], atol=1e-12)
    assert found["draws_per_token"].tolist() == [17, 100, 100]
    assert set(found["monte_carlo_se"]) == {0.1}
