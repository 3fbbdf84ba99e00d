from math import isnan

import pytest

from ganlm.sweep import choice, curve


def result(window: int, estimator: str, mean: float, estimand: str = "sample") -> dict:
    labels = {"protocol": f"window-{window}", "estimand": estimand, "estimator": estimator, "draws": 0}
    return labels | {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "tokens": 50}


def test_windows_are_in_the_order_of_numbers():
    found = curve([result(window, "exact", window / 10) for window in (20, 7, 100)])
    assert [point["window"] for point in found] == [7, 20, 100]
    assert isnan(found[0].pop("from_below"))
    assert found[0] == {
        "window": 7,
        "estimator": "exact",
        "mean": 0.7,
        "low": 0.6,
        "high": pytest.approx(0.8),
        "tokens": 50,
    }


@pytest.mark.parametrize(
    ("estimators", "shown"),
    [
        (("plug-in", "exact", "harmonic"), "exact"),
        (("harmonic", "mean-softmax", "plug-in"), "mean-softmax"),
        (("plug-in", "harmonic", "ibs"), "harmonic"),
    ],
)
def test_the_best_that_is_known_of_a_model_is_shown(estimators, shown):
    results = [result(7, estimator, 2 + k) for k, estimator in enumerate(estimators)]
    results.insert(0, result(7, shown, 0.5, estimand="argmax"))
    (point,) = curve(results)
    assert (point["estimator"], point["mean"]) == (shown, 2 + estimators.index(shown))


def test_the_fewest_bits_win_and_of_equals_the_shortest_window():
    results = [result(window, "exact", bits) for window, bits in ((31, 2.0), (10, 2.0), (7, 2.5), (1, 4.0))]
    assert choice(results)["window"] == choice(results)["window_from_below"] == 10
    assert choice(results)["points"] == curve(results)


def test_each_estimate_chooses_a_window_of_its_own():
    """The mean softmax errs upwards at the long window, the harmonic estimate downwards."""
    bits = {7: (3.30, 3.25), 20: (3.35, 3.10)}
    results = [
        result(window, estimator, mean)
        for window, means in bits.items()
        for estimator, mean in zip(("mean-softmax", "harmonic"), means, strict=True)
    ]
    assert (choice(results)["window"], choice(results)["window_from_below"]) == (7, 20)


def test_a_mean_softmax_has_the_harmonic_estimate_below_it():
    results = [result(7, "mean-softmax", 3.8), result(7, "harmonic", 3.7), result(10, "harmonic", 3.6)]
    shorter, longer = curve(results)
    assert (shorter["mean"], shorter["from_below"]) == (3.8, 3.7)
    assert longer["mean"] == 3.6
    assert isnan(longer["from_below"])
