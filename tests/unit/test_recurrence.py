"""Figure 1 says what the two kinds of generators feed back, and where they draw."""

import pandas as pd
import pytest

from ganlm.figures.recurrence import NOISY, RANDOM, SAMPLED, STEPS, connections


@pytest.fixture
def arrows() -> pd.DataFrame:
    return connections()


def fed_back(arrows: pd.DataFrame, generator: str) -> set[str]:
    """What reaches a state from the step before, other than through the state."""
    step = {end: arrows[end].str.split().str[1].astype(int) for end in ("source", "target")}
    later = (step["target"] == step["source"] + 1) & (step["source"] > 0)
    mine = arrows[later & (arrows["generator"] == generator)]
    return set(mine["carries"]) - {"state"}


def draws(arrows: pd.DataFrame, generator: str) -> int:
    mine = arrows[arrows["generator"] == generator]
    return len({node for node in mine["source"] if node.split()[0] in RANDOM})


def test_one_feeds_back_a_token_and_the_other_a_distribution(arrows: pd.DataFrame):
    assert fed_back(arrows, SAMPLED) == {"one-hot token"}
    assert fed_back(arrows, NOISY) == {"soft distribution"}


def test_one_draws_at_every_step_and_the_other_once(arrows: pd.DataFrame):
    assert draws(arrows, SAMPLED) == STEPS
    assert draws(arrows, NOISY) == 1


def test_every_state_has_a_state_before_it_and_an_input(arrows: pd.DataFrame):
    into = arrows[arrows["target"].str.startswith("state")]
    assert set(into.groupby(["generator", "target"]).size()) == {2}
    assert into["target"].nunique() == STEPS
    before = into[into["carries"] == "state"]["source"]
    assert set(before[before.str.endswith(" 0")]) == {"zeros 0", "noise 0"}
