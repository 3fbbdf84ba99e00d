import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganlm.tuning import changed, decision, points, row

PAPER = {"embedding": [8, 16], "hidden": [128, 256, 512], "epochs": [120]}
NUMBERS = st.integers(1, 2000) | st.floats(1e-12, 1e12)
VALUES = {
    "hidden": st.integers(1, 2000),
    "learning_rate": NUMBERS,
    "clip": NUMBERS,
    "schedule": st.sampled_from(["constant", "cosine"]),
    "carry": st.booleans(),
}
GRIDS = st.fixed_dictionaries(
    {},
    optional={key: st.lists(values, min_size=1, max_size=3, unique=True) for key, values in VALUES.items()},
).filter(bool)


def result(point: str, bits: float, size: int) -> dict:
    return {"point": point, "best_validation_bpc": bits, "size": size}


def nested_loops(grid: dict[str, list]) -> list[dict]:
    if not grid:
        return [{}]
    (key, values), *rest = grid.items()
    return [{key: value} | others for value in values for others in nested_loops(dict(rest))]


def test_the_grid_of_the_paper():
    found = points(PAPER)
    assert list(found) == [
        "embedding-8-epochs-120-hidden-128",
        "embedding-8-epochs-120-hidden-256",
        "embedding-8-epochs-120-hidden-512",
        "embedding-16-epochs-120-hidden-128",
        "embedding-16-epochs-120-hidden-256",
        "embedding-16-epochs-120-hidden-512",
    ]
    assert found["embedding-16-epochs-120-hidden-256"] == {"embedding": 16, "hidden": 256, "epochs": 120}


@given(GRIDS)
def test_points_are_what_nested_loops_meet_each_with_a_name_of_its_own(grid: dict[str, list]):
    found = points(grid)
    assert list(found.values()) == nested_loops(grid)
    assert all(re.fullmatch(r"[A-Za-z0-9_.+-]+", name) for name in found)


@given(GRIDS, st.data())
def test_a_point_keeps_its_name_when_the_grid_changes_around_it(grid: dict[str, list], data: st.DataObject):
    turned = {key: data.draw(st.permutations(grid[key])) for key in data.draw(st.permutations(list(grid)))}
    assert points(turned) == points(grid)
    smaller = {key: values[:1] for key, values in grid.items()}
    assert points(grid) == points(grid) | points(smaller)


def test_a_key_is_replaced_where_it_lives_and_the_base_stays_as_it_was():
    base = {"kind": "lstm", "hidden": 8, "dropout": 0, "training": {"epochs": 3, "window": 20}}
    point = changed(base, {"hidden": 16, "window": 40})
    assert point == {"kind": "lstm", "hidden": 16, "dropout": 0, "training": {"epochs": 3, "window": 40}}
    assert base == {"kind": "lstm", "hidden": 8, "dropout": 0, "training": {"epochs": 3, "window": 20}}


def test_a_row_repeats_what_the_sidecar_says_of_the_validation_part():
    sidecar = {"parameters": {}, "size": 7, "best_epoch": 2, "best_validation_bpc": 1.5, "torch": "2"}
    found = row("hidden-8", {"hidden": 8}, sidecar)
    assert found == {"point": "hidden-8", "hidden": 8, "best_epoch": 2, "best_validation_bpc": 1.5, "size": 7}


def test_the_fewest_bits_win_by_what_the_next_needs_more():
    worst, best, second = result("a", 3.0, 1), result("b", 1.5, 9), result("c", 1.75, 5)
    assert decision([worst, best, second]) == {"winner": best, "runner_up": second, "difference": 0.25}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([result("a", 2.0, 9), result("b", 2.0, 5), result("c", 2.0, 7)], ("b", "c")),
        ([result("b", 2.0, 5), result("a", 2.0, 5)], ("b", "a")),
        ([result("a", 3.0, 1), result("c", 2.0, 5), result("b", 2.0, 5)], ("c", "b")),
    ],
)
def test_of_equals_the_smaller_wins_then_the_first(rows: list[dict], names: tuple[str, str]):
    decided = decision(rows)
    assert (decided["winner"]["point"], decided["runner_up"]["point"]) == names
    assert decided["difference"] == 0


def test_a_single_point_wins_against_nobody():
    only = result("a", 2.0, 5)
    assert decision([only]) == {"winner": only, "runner_up": None, "difference": None}
