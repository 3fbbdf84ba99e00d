from copy import deepcopy
from pathlib import Path

import pytest

from ganlm.config import ConfigError, checked
from ganlm.experiment import Experiment

SCHEMA = Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml"
PUBLISHED = {"shuffle": False, "rollout_lag": 0, "sampling_dropout": True, "loss": "sum"}
CONFIG = {
    "name": "x",
    "corpus": {"source": "bundled"},
    "models": {
        "uniform": {"kind": "uniform"},
        "lm": {"kind": "lstm", "embedding": 8, "hidden": 16, "dropout": 0.25, "training": {"epochs": 3}},
        "gan": {
            "kind": "seqgan",
            "start": "lm",
            "paper": "seqgan-full",
            "arms": {"published": PUBLISHED, "long": {"epochs": 30, "keep": [30, 5]}, "plain": {}},
            "training": {"epochs": 10, "keep": [1, 10], "learning_rate": 0.02},
        },
        "own": {"kind": "python", "object": "a/b.py:C", "files": ["weights"], "window": 7},
        "program": {"kind": "command", "command": ["perl", __file__], "files": ["data"]},
        "table": {"kind": "counts", "file": "counts.csv"},
    },
    "evaluation": {"windows": [100, 7, "none"]},
}
ROWS = ["uniform", "lm", "gan-published", "gan-long", "gan-plain", "own", "program", "table"]


def config(**changes) -> dict:
    """The config above, with values replaced that are named by their path in `gan`."""
    found = deepcopy(CONFIG)
    for path, value in changes.items():
        *above, last = path.split("__")
        block = found["models"]["gan"]
        for key in above:
            block = block[key]
        block[last] = value
    return found


def experiment(**changes) -> Experiment:
    return Experiment(checked(config(**changes), SCHEMA))


def test_an_arm_is_a_row_where_its_model_was():
    assert list(experiment().models) == ROWS
    assert experiment().table1 == ROWS
    assert experiment().of_kind("seqgan") == ["gan-published", "gan-long", "gan-plain"]


def test_an_arm_changes_what_it_names_and_nothing_else():
    models = experiment().models
    plain = models["gan-plain"]["training"]
    assert plain["learning_rate"] == 0.02
    assert plain["epochs"] == 10
    assert (plain["shuffle"], plain["rollout_lag"], plain["sampling_dropout"], plain["loss"]) == (
        True,
        0.8,
        False,
        "mean",
    )
    assert models["gan-published"]["training"] == plain | PUBLISHED
    assert models["gan-long"]["training"] == plain | {"epochs": 30, "keep": [30, 5]}


def test_an_arm_knows_the_architecture_it_starts_from():
    for name in experiment().of_kind("seqgan"):
        block = experiment().models[name]
        assert block["architecture"] == {"embedding": 8, "hidden": 16, "layers": 1, "dropout": 0.25}
        assert block["start"] == "lm"
        assert block["paper"] == "seqgan-full"
        assert "arms" not in block


def test_the_start_may_come_after_the_model():
    models = config()["models"]
    late = config() | {"models": {"gan": models["gan"], "lm": models["lm"]}}
    assert list(Experiment(checked(late, SCHEMA)).models) == ["gan-published", "gan-long", "gan-plain", "lm"]


def test_expanding_does_not_change_the_config():
    whole = checked(config(), SCHEMA)
    before = deepcopy(whole)
    assert Experiment(whole).instances
    assert whole == before


def test_kept_epochs_are_instances_of_their_own():
    found = experiment()
    assert found.epochs == {
        "gan-published": {1: "gan-published-e1", 10: "gan-published-e10"},
        "gan-long": {30: "gan-long-e30", 5: "gan-long-e5"},
        "gan-plain": {1: "gan-plain-e1", 10: "gan-plain-e10"},
    }
    assert set(found.instances) == {
        *ROWS,
        *(name for names in found.epochs.values() for name in names.values()),
    }
    assert found.instances["gan-long-e5"] == found.models["gan-long"] | {"epoch": 5}
    assert "epoch" not in found.instances["gan-long"]


def test_every_arm_starts_at_the_language_model():
    found = experiment()
    assert found.arms["gan-published"] == {0: "lm", 1: "gan-published-e1", 10: "gan-published-e10"}
    assert found.adversarial_instances.count("lm") == 1
    assert set(found.adversarial_instances) < set(found.instances)


def test_epochs_differ_in_what_their_evaluation_depends_on():
    found = experiment()
    one, ten, best = (found.hyper_parameters(f"gan-plain{suffix}") for suffix in ("-e1", "-e10", ""))
    assert (one["epoch"], ten["epoch"]) == (1, 10)
    assert one | {"epoch": 10} == ten == best | {"epoch": 10}
    assert not {"window", "paper", "files"} & set(one)


@pytest.mark.parametrize(
    ("instance", "files"),
    [
        ("uniform", []),
        ("lm", ["models/lm/model.safetensors", "models/lm/model.json"]),
        ("gan-plain", ["models/gan-plain/model.safetensors", "models/gan-plain/model.json"]),
        ("gan-plain-e1", ["models/gan-plain/kept.safetensors", "models/gan-plain/model.json"]),
        ("gan-plain-e10", ["models/gan-plain/kept.safetensors", "models/gan-plain/model.json"]),
        ("own", ["a/b.py", "weights"]),
        ("program", [__file__, "data"]),
        ("table", ["counts.csv"]),
    ],
)
def test_files(instance, files):
    assert experiment().files(instance, "models") == files


@pytest.mark.parametrize("name", ["run-eNone", "run-e5"])
def test_a_name_that_looks_like_an_epoch_is_a_name(name):
    block = CONFIG["models"]["lm"]
    found = Experiment(checked(CONFIG | {"models": {name: block}}, SCHEMA))
    assert found.files(name, "models")[0] == f"models/{name}/model.safetensors"


def test_an_arm_that_looks_like_an_epoch_has_its_own_files():
    found = experiment(arms={"a-e1": {"keep": [2]}, "b": {"keep": [1]}})
    assert found.files("gan-a-e1", "m")[0] == "m/gan-a-e1/model.safetensors"
    assert found.files("gan-a-e1-e2", "m")[0] == "m/gan-a-e1/kept.safetensors"
    assert found.files("gan-b-e1", "m")[0] == "m/gan-b/kept.safetensors"


@pytest.mark.parametrize(
    ("instance", "kind", "measures"),
    [
        ("lm", "lstm", ["explicit"]),
        ("gan-plain", "seqgan", ["explicit"]),
        ("gan-plain-e10", "seqgan", ["explicit"]),
        ("own", "python", ["explicit", "latent", "sampled"]),
        ("program", "command", ["sampled"]),
        ("table", "counts", ["counts"]),
    ],
)
def test_sources_exist_and_are_those_of_the_kind(instance, kind, measures):
    found = experiment().sources(instance)
    assert found == [f"ganlm/models/{kind}.py", *(f"ganlm/measure_{m}.py" for m in measures)]
    scripts = SCHEMA.parents[1] / "scripts"
    assert all((scripts / path).is_file() for path in found)


@pytest.mark.parametrize(
    ("instance", "windows", "pilot"),
    [
        ("lm", [100, 7, "none"], 100),
        ("gan-long", [100, 7, "none"], 100),
        ("gan-long-e30", [100, 7, "none"], 100),
        ("own", [7], 7),
        ("program", [100], 100),
    ],
)
def test_windows(instance, windows, pilot):
    assert experiment().windows(instance) == windows
    assert experiment().pilot_window(instance) == pilot


def test_an_arm_inherits_the_window_of_its_model():
    found = experiment(window=7)
    assert found.pilot_window("gan-plain") == found.pilot_window("gan-plain-e1") == 7
    assert found.windows("gan-plain") == [100, 7, "none"]
    assert experiment(window="none").pilot_window("gan-plain") == 100


def test_a_generator_of_any_epoch_is_explicit():
    found = experiment()
    assert all(found.is_explicit(name) for name in ("lm", "gan-plain", "gan-plain-e10"))
    assert not found.is_explicit("own")


def test_lists_name_rows_not_models():
    with pytest.raises(
        ConfigError, match="table1 names 'gan', which is not in models: uniform, lm, gan-publ"
    ):
        checked(config() | {"table1": ["gan"]}, SCHEMA)
    rows = ["gan-plain", "lm"]
    assert Experiment(checked(config() | {"table1": rows}, SCHEMA)).table1 == rows


BAD = {
    "wrong key": (
        {"arms__plain": {"shufle": True}},
        "models.gan.arms.plain has the unknown key 'shufle'; known keys: epochs, keep, length",
    ),
    "wrong type": (
        {"arms__plain": {"shuffle": 1}},
        "models.gan.arms.plain.shuffle must be of type boolean, not 1",
    ),
    "float epochs": (
        {"arms__plain": {"epochs": 20.0}},
        "models.gan.arms.plain.epochs must be of type integer",
    ),
    "wrong word": (
        {"arms__plain": {"loss": "median"}},
        "models.gan.arms.plain.loss is 'median'; it must be one of mean, sum",
    ),
    "lag of one": (
        {"arms__plain": {"rollout_lag": 1}},
        "models.gan.arms.plain.rollout_lag: 1 is greater than",
    ),
    "no number": (
        {"arms__plain": {"learning_rate": float("nan")}},
        "models.gan.arms.plain.learning_rate must be of type number, not nan",
    ),
    "nothing": ({"arms__plain": None}, "models.gan.arms.plain must be of type object, not None"),
    "a list": ({"arms__plain": [1]}, "models.gan.arms.plain must be of type object, not [1]"),
    "no arms": ({"arms": {}}, "models.gan.arms: {} should be non-empty"),
    "arm is a path": ({"arms": {"a/b": {}}}, "models.gan.arms: 'a/b' does not fit; wanted: Letters"),
    "arm is a number": ({"arms": {1: {}}}, "models.gan.arms has the key 1, which is not text"),
    "keep after the last": (
        {"arms__plain": {"epochs": 9}},
        "models.gan.arms.plain keeps epochs after its last, 9",
    ),
    "keep after the last, in all arms": (
        {"training__keep": [11], "arms": {"a": {"keep": [10]}, "b": {}}},
        "models.gan.arms.b keeps epochs after its last, 10",
    ),
    "keep nothing": ({"arms__plain": {"keep": []}}, "models.gan.arms.plain.keep: [] should be non-empty"),
    "keep the start": (
        {"arms__plain": {"keep": [0]}},
        "models.gan.arms.plain.keep.0: 0 is less than the min",
    ),
    "start is missing": ({"start": "ml"}, "models.gan.start is 'ml', which is no model of kind lstm"),
    "start is no lstm": (
        {"start": "uniform"},
        "models.gan.start is 'uniform', which is no model of kind lstm",
    ),
    "start is itself": ({"start": "gan"}, "models.gan.start is 'gan', which is no model of kind lstm"),
    "start is an arm": ({"start": "gan-plain"}, "models.gan.start is 'gan-plain', which is no model of kind"),
    "start is a list": ({"start": ["lm"]}, "models.gan.start must be of type string, not ['lm']"),
    "arm is called as another's epoch": (
        {"arms": {"a": {"keep": [1]}, "a-e1": {"keep": [2]}}},
        "models.gan.arms.a-e1 makes 'gan-a-e1', another model's name: rename one of them",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_arm_gets_one_sentence(case):
    changes, sentence = BAD[case]
    with pytest.raises(ConfigError) as caught:
        experiment(**changes)
    assert str(caught.value).startswith(f"config: {sentence}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["gan-plain", "gan-plain-e10"])
def test_no_model_may_be_called_as_an_arm(name):
    clash = config()
    clash["models"][name] = {"kind": "uniform"}
    with pytest.raises(ConfigError) as caught:
        checked(clash, SCHEMA)
    assert str(caught.value) == (
        f"config: models.gan.arms.plain makes {name!r}, another model's name: rename one of them"
    )
