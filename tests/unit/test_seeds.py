"""Several trainings of one model: their names, their seeds, and the row that they become."""

import math
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from ganlm import tables
from ganlm.config import ConfigError, checked
from ganlm.experiment import Experiment
from ganlm.measurement import Row
from ganlm.seeds import over_seeds, pooled
from ganlm.summary import summarise

SCHEMA = Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml"
CONFIG = {
    "name": "x",
    "corpus": {"source": "bundled"},
    "models": {
        "pairs": {"kind": "ngram", "order": 2},
        "lm": {"kind": "lstm", "embedding": 8, "hidden": 16, "training": {"epochs": 3, "seed": 10}},
        "gan": {
            "kind": "seqgan",
            "start": "lm",
            "arms": {"plain": {}, "other": {"seed": 5}},
            "training": {"epochs": 2, "keep": [2]},
        },
        "rgan": {"kind": "recurrent_gan", "hidden": 8, "training": {"lengths": [1, 2], "iterations": 1}},
    },
    "evaluation": {"windows": [7]},
    "choose_n": {"models": ["pairs", "lm"]},
    "sweep": {"models": ["rgan"]},
    "tune": {"sizes": {"model": "lm", "grid": {"hidden": [8]}}},
}


def experiment(seeds: list[int], **changes) -> Experiment:
    return Experiment(checked(deepcopy(CONFIG) | {"seeds": seeds} | changes, SCHEMA))


def test_one_seed_changes_no_name():
    found = experiment([1])
    assert list(found.models) == ["pairs", "lm", "gan-plain", "gan-other", "rgan"]
    assert found.models == Experiment(checked(CONFIG, SCHEMA)).models
    assert found.rows == {name: [name] for name in found.models}
    assert experiment([4]).models.keys() == found.models.keys()


def test_every_trained_model_has_every_seed():
    found = experiment([1, 3])
    assert found.rows == {
        "pairs": ["pairs"],
        **{row: [f"{row}-s1", f"{row}-s3"] for row in ("lm", "gan-plain", "gan-other", "rgan")},
    }
    assert list(found.models) == [name for names in found.rows.values() for name in names]
    assert {"lm-s3-last", "gan-plain-s1-e2", "gan-plain-s3-last", "rgan-s1-e1"} <= set(found.instances)
    assert not {"lm", "lm-last", "gan-plain", "rgan-e1"} & set(found.instances)


def test_the_seed_of_a_block_is_the_base():
    def seeds_of(found: Experiment) -> dict:
        return {
            name: block["training"]["seed"] for name, block in found.models.items() if "training" in block
        }

    assert seeds_of(experiment([1])) == {"lm": 10, "gan-plain": 1, "gan-other": 5, "rgan": 1}
    assert seeds_of(experiment([3])) == {"lm": 12, "gan-plain": 3, "gan-other": 7, "rgan": 3}
    assert seeds_of(experiment([1, 3]))["lm-s1"] == 10
    assert seeds_of(experiment([1, 3]))["lm-s3"] == 12
    assert seeds_of(experiment([1, 3]))["gan-other-s3"] == 7


def test_seeds_differ_in_nothing_but_their_seed_and_start():
    models = experiment([1, 2]).models
    one, two = models["gan-plain-s1"], models["gan-plain-s2"]
    assert (one["start"], two["start"]) == ("lm-s1", "lm-s2")
    assert {key for key in one if one[key] != two[key]} == {"start", "training"}
    assert {key for key in one["training"] if one["training"][key] != two["training"][key]} == {"seed"}
    assert experiment([1, 2]).arms["gan-plain-s2"] == {0: "lm-s2", 2: "gan-plain-s2-e2"}


def test_lists_name_rows_and_mean_all_their_seeds():
    found = experiment([1, 2])
    assert list(found.table1) == ["pairs", "lm", "gan-plain", "gan-other", "rgan"]
    assert found.tabulated == list(found.models)
    assert found.choosing == ["pairs", "lm-s1", "lm-s2"]
    assert found.gap_models == found.choosing
    assert found.swept == ["rgan-s1", "rgan-s2"]
    assert found.shown("lm") == {"kind": "lstm", "window": None, "paper": None}


def test_a_gan_meets_the_language_model_of_its_own_seed():
    apart = {"models": CONFIG["models"] | {"apart": CONFIG["models"]["lm"]}}
    trained, counted = (
        experiment([1, 2], **apart, findings={"language_model": name}).questions["opponents"]
        for name in ("apart", "pairs")
    )
    assert trained["gan-plain-s2"] == "apart-s2"
    assert trained["rgan-s1"] == "apart-s1"
    assert set(counted.values()) == {"pairs"}


def test_a_grid_is_trained_with_the_base():
    for seeds in ([1], [1, 2], [2]):
        assert experiment(seeds).point("sizes", "hidden-8")["training"]["seed"] == 10


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seeds": []}, "seeds: [] should be non-empty"),
        ({"seeds": [0]}, "seeds.0: 0 is less than the minimum of 1"),
        ({"seeds": [1, 1]}, "seeds: [1, 1] has non-unique elements"),
        ({"seeds": 3}, "seeds must be of type array, not 3"),
        (
            {"evaluation": {"windows": [7], "baseline": "lm"}},
            "evaluation.baseline names 'lm', which has several seeds: name one of lm-s1, lm-s2",
        ),
        (
            {"findings": {"language_model": "pears"}},
            "findings.language_model names 'pears', which is not in models: pairs, lm, gan-plain",
        ),
        ({"table1": ["lm-s1"]}, "table1 names 'lm-s1', which is not in models: pairs, lm, gan-plain"),
        (
            {"models": CONFIG["models"] | {"lm-s2": {"kind": "uniform"}}},
            "models.lm makes 'lm-s2', another model's name",
        ),
        (
            {"models": CONFIG["models"] | {"gan-plain-s1-e2": {"kind": "uniform"}}},
            "models.gan.arms.plain makes 'gan-plain-s1-e2'",
        ),
    ],
)
def test_what_seeds_cannot_be_gets_one_sentence(changes, sentence):
    with pytest.raises(ConfigError) as caught:
        experiment(**{"seeds": [1, 2]} | changes)
    assert str(caught.value).startswith(f"config: {sentence}")
    assert "\n" not in str(caught.value)


def test_one_of_the_seeds_may_be_the_baseline():
    evaluation = {"windows": [7], "baseline": "lm-s2"}
    assert experiment([1, 2], evaluation=evaluation).config["evaluation"]["baseline"] == "lm-s2"


def result(mean: float, error: float = 0.0, blocks: int = 20, **facts) -> dict:
    known = {"protocol": "window-7", "estimand": "sample", "estimator": "exact", "draws": 0, "unit": "bits"}
    known |= {"mean": mean, "standard_error": error, "blocks": blocks, "level": 0.95, "tokens": 100}
    return known | {"draws_per_token": 0.0, "never_hit_share": 0.0} | facts


def test_mean_and_spread_by_hand():
    """2, 3 and 4 bits: mean 3, standard deviation 1, and without other errors mean ± t(2) / √3."""
    found = over_seeds([result(2.0), result(3.0), result(4.0)])
    assert (found["mean"], found["spread"], found["seeds"]) == (3.0, 1.0, 3)
    half = 4.302652729911275 / math.sqrt(3)
    assert (found["low"], found["high"]) == (pytest.approx(3 - half), pytest.approx(3 + half))


def test_seeds_that_agree_leave_the_error_of_the_text():
    found = over_seeds([result(2.0, 0.1), result(2.0, 0.1)])
    assert found["spread"] == 0
    assert found["high"] - 2 == pytest.approx(0.1 * t.ppf(0.975, 19))


def test_both_errors_add_up_with_satterthwaites_degrees_of_freedom():
    found = over_seeds([result(2.0, 0.1), result(2.2, 0.3, blocks=11)])
    training, shared = 0.02 / 2, 0.2**2
    degrees = (training + shared) ** 2 / (training**2 / 1 + shared**2 / 10)
    half = t.ppf(0.975, degrees) * math.sqrt(training + shared)
    assert found["high"] - found["mean"] == pytest.approx(half)


def test_an_interval_over_seeds_covers():
    """Trainings with error 0.3, one text with error 0.2 that all share; conservative where they differ."""
    rng, hits, rounds = np.random.default_rng(1), 0, 2000
    for _ in range(rounds):
        text = rng.normal(0, 0.2)
        seen = 0.2 * math.sqrt(rng.chisquare(19) / 19)
        found = over_seeds([result(5 + text + rng.normal(0, 0.3), seen) for _ in range(4)])
        hits += found["low"] <= 5 <= found["high"]
    assert 0.94 < hits / rounds < 0.98


def test_bits_are_not_negative_and_scores_may_be():
    low = [over_seeds([result(0.1, unit=unit), result(0.9, unit=unit)])["low"] for unit in ("bits", "score")]
    assert low[0] == 0
    assert low[1] < 0


def test_an_infinite_seed_is_unknown():
    found = over_seeds([result(2.0), result(2.0) | {"mean": None, "standard_error": None}])
    assert math.isnan(found["mean"])
    assert tables.Metric.of_unit("character").show(found["mean"]) == "?"


def summary(name: str, bits: float) -> dict:
    noise = np.random.default_rng(1).normal(0, 0.01, 40)
    rows = [
        Row("window-7", "sample", "exact", 0, "bits", block, 100, 100 * (bits + error), 0.0, 0.0, 0)
        for block, error in enumerate(noise - noise.mean())
    ]
    return {"model": name, "results": summarise(pd.DataFrame(rows, columns=Row._fields), 0.95)}


def test_table_1_has_a_row_per_model_with_mean_and_spread():
    literature = pd.DataFrame(columns=["id", "approach", "model", "bpc", "approx_bpc", "citation"])
    rows = {
        "pairs": pooled([summary("pairs", 3.5)], "pairs"),
        "lm": pooled([summary(f"lm-s{seed}", bits) for seed, bits in ((1, 2.0), (2, 2.1), (3, 2.3))], "lm"),
    }
    blocks = {"pairs": {"kind": "ngram"}, "lm": {"kind": "lstm"}}
    blocks = {name: block | {"window": 7, "paper": None} for name, block in blocks.items()}
    table = tables.table1(rows, blocks, [7], tables.Metric.of_unit("character"), literature).set_index(
        "Model"
    )
    assert list(table.index) == ["lm", "pairs"]
    assert (table.loc["lm", "Direct BPC"], table.loc["lm", "Seeds"]) == ("2.133", "3")
    assert table.loc["lm", "SD over seeds, bits"] == f"{np.std([2.0, 2.1, 2.3], ddof=1):.4f}"
    assert (table.loc["pairs", "Seeds"], table.loc["pairs", "Direct BPC"]) == ("", "3.500")
    alone = tables.table1(
        rows, {"pairs": blocks["pairs"]}, [7], tables.Metric.of_unit("character"), literature
    )
    assert not any("eed" in column for column in alone.columns)


def test_only_what_all_seeds_have_is_pooled():
    one, two = summary("lm-s1", 2.0), summary("lm-s2", 2.1)
    one["results"].append(one["results"][0] | {"estimator": "brier"})
    assert [found["estimator"] for found in pooled([one, two], "lm")["results"]] == ["exact"]
