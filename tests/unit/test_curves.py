import pandas as pd

from ganlm.curves import curves


def test_steps_are_spread_over_their_epoch_and_gaps_are_left_out():
    table = pd.DataFrame(
        {
            "step": range(5),
            "epoch": [0, 0, 1, 1, 1],
            "tokens": 7,
            "loss": [4.0, 3.0, None, 2.0, 1.0],
            "bpc": [None, None, None, None, 9.0],
        }
    )
    found = curves({"a": table, "b": table.iloc[:2]})
    assert found.columns.tolist() == ["model", "epoch", "quantity", "value"]
    of_a = found[found["model"] == "a"]
    loss = of_a[of_a["quantity"] == "loss"]
    assert loss["epoch"].tolist() == [-0.5, 0.0, 2 / 3, 1.0]
    assert loss["value"].tolist() == [4.0, 3.0, 2.0, 1.0]
    assert of_a[of_a["quantity"] == "bpc"][["epoch", "value"]].to_numpy().tolist() == [[1.0, 9.0]]
    assert set(found["quantity"]) == {"loss", "bpc"}
    assert found[found["model"] == "b"]["value"].tolist() == [4.0, 3.0]


def test_one_step_per_epoch_stands_at_its_number():
    table = pd.DataFrame({"epoch": [1, 2, 3], "tokens": 1, "loss": [3.0, 2.0, 1.0]})
    assert curves({"lm": table})["epoch"].tolist() == [1, 2, 3]
