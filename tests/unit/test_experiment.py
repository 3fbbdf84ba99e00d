from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from ganlm.config import ConfigError, checked
from ganlm.experiment import Experiment

SCHEMA = Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml"
PUBLISHED = {
    "shuffle": False,
    "rollout_lag": 0,
    "sampling_dropout": True,
    "loss": "sum",
    "adam": "tensorflow",
}
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
    assert list(experiment().table1) == ROWS
    assert experiment().of_kind("seqgan") == ["gan-published", "gan-long", "gan-plain"]


def test_full_adversarial_training_is_what_an_arm_ended_with():
    """Beside the published number stands what does as the paper did: its code's arm, at its end."""
    found = experiment(training__learning_rate=0.01, arms__slow=PUBLISHED | {"learning_rate": 0.0001})
    rows = ["gan-published", "gan-published-last", "gan-long", "gan-plain", "gan-slow"]
    assert [row for row in found.table1 if row.startswith("gan")] == rows
    papers = {row: found.shown(row)["paper"] for row in rows}
    assert papers == dict.fromkeys(rows) | {"gan-published-last": "seqgan-full"}
    assert found.table1["gan-published-last"] == ["gan-published-last"]
    assert set(found.tabulated) <= set(found.instances)


def test_without_a_published_result_the_end_has_no_row():
    found = experiment(training__learning_rate=0.01, paper=None)
    assert list(found.table1) == ROWS


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
        *(f"{name}-last" for name in ("lm", "gan-published", "gan-long", "gan-plain")),
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
        ("lm-last", ["models/lm/last.safetensors", "models/lm/model.json"]),
        ("gan-plain-last", ["models/gan-plain/last.safetensors", "models/gan-plain/model.json"]),
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
    assert list(Experiment(checked(config() | {"table1": rows}, SCHEMA)).table1) == rows


def test_a_point_is_its_model_with_the_keys_of_the_grid():
    """`window` in a grid is that of training: the block's own is a protocol, which training does not know."""
    grid = {"hidden": [16, 32], "dropout": [0.5], "window": [20, 40]}
    found = Experiment(checked(config() | {"tune": {"sizes": {"model": "lm", "grid": grid}}}, SCHEMA))
    assert list(found.grids["sizes"]) == [
        f"dropout-0.5-hidden-{hidden}-window-{window}" for hidden in (16, 32) for window in (20, 40)
    ]
    base = found.hyper_parameters("lm")
    training = base["training"] | {"window": 40}
    point = found.point("sizes", "dropout-0.5-hidden-32-window-40")
    assert point == base | {"hidden": 32, "dropout": 0.5, "training": training}
    assert set(found.instances) == set(experiment().instances)


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


@pytest.mark.parametrize("name", ["gan-plain", "gan-plain-e10", "gan-plain-last"])
def test_no_model_may_be_called_as_an_arm(name):
    clash = config()
    clash["models"][name] = {"kind": "uniform"}
    with pytest.raises(ConfigError) as caught:
        checked(clash, SCHEMA)
    assert str(caught.value) == (
        f"config: models.gan.arms.plain makes {name!r}, another model's name: rename one of them"
    )


def test_no_model_may_be_called_as_the_end_of_another():
    clash = config()
    clash["models"]["lm-last"] = {"kind": "uniform"}
    with pytest.raises(ConfigError, match=r"models\.lm makes 'lm-last', another model's name"):
        checked(clash, SCHEMA)


def curriculum(**changes) -> dict:
    """A config with a Recurrent GAN whose training has keys replaced."""
    training = {"lengths": [1, 2, 4], "iterations": 5} | changes
    block = {"kind": "recurrent_gan", "hidden": 16, "window": 7, "training": training}
    return CONFIG | {"models": CONFIG["models"] | {"rgan": block}}


def test_every_stage_of_a_curriculum_is_an_instance():
    found = Experiment(checked(curriculum(), SCHEMA))
    assert found.epochs["rgan"] == {1: "rgan-e1", 2: "rgan-e2", 4: "rgan-e4"}
    assert found.models["rgan"]["training"]["keep"] == [1, 2, 4]
    assert found.instances["rgan-e4"] == found.models["rgan"] | {"epoch": 4}
    assert found.files("rgan-e4", "m") == ["m/rgan/kept.safetensors", "m/rgan/model.json"]
    assert found.files("rgan", "m") == ["m/rgan/model.safetensors", "m/rgan/model.json"]
    some = Experiment(checked(curriculum(keep=[4]), SCHEMA))
    assert some.epochs["rgan"] == {4: "rgan-e4"}


def test_a_curriculum_starts_from_no_language_model():
    found = Experiment(checked(curriculum(), SCHEMA))
    assert set(found.arms) == {"gan-published", "gan-long", "gan-plain"}
    assert not any(name.startswith("rgan") for name in found.adversarial_instances)
    alone = {"models": {"rgan": curriculum()["models"]["rgan"]}}
    assert Experiment(checked(CONFIG | alone, SCHEMA)).arms == {}


def test_a_latent_generator_is_measured_as_one_under_its_own_protocol():
    found = Experiment(checked(curriculum(), SCHEMA))
    assert not found.is_explicit("rgan-e1")
    assert found.windows("rgan") == found.windows("rgan-e1") == [7]
    assert found.sources("rgan-e2") == ["ganlm/models/recurrent_gan.py", "ganlm/measure_latent.py"]


def test_how_a_model_writes_concerns_its_samples_only():
    plain, refed = curriculum(), deepcopy(curriculum())
    refed["models"]["rgan"]["refeed"] = True
    one, other = (Experiment(checked(config, SCHEMA)) for config in (plain, refed))
    assert one.hyper_parameters("rgan") == other.hyper_parameters("rgan")
    assert one.writing_parameters("rgan") != other.writing_parameters("rgan")
    assert one.hyper_parameters("rgan")["training"]["iterations"] == 5


BAD_CURRICULA = {
    "no such length": ({"keep": [1, 3]}, "models.rgan.training keeps 3, none of its lengths [1, 2, 4]"),
    "no length": ({"lengths": []}, "models.rgan.training.lengths: [] should be non-empty"),
    "a length twice": ({"lengths": [1, 1]}, "models.rgan.training.lengths: [1, 1] has non-unique elements"),
    "nothing to read": ({"lengths": [0]}, "models.rgan.training.lengths.0: 0 is less than the minimum of 1"),
    "one beta": ({"betas": [0.5]}, "models.rgan.training.betas: [0.5] is too short"),
    "wrong key": ({"epochs": 3}, "models.rgan.training has the unknown key 'epochs'; known keys: lengths"),
}


@pytest.mark.parametrize("case", BAD_CURRICULA)
def test_a_bad_curriculum_gets_one_sentence(case):
    changes, sentence = BAD_CURRICULA[case]
    with pytest.raises(ConfigError) as caught:
        checked(curriculum(**changes), SCHEMA)
    assert str(caught.value).startswith(f"config: {sentence}")
    assert "\n" not in str(caught.value)


def test_no_model_may_be_called_as_a_stage():
    clash = deepcopy(curriculum())
    clash["models"]["rgan-e2"] = {"kind": "uniform"}
    with pytest.raises(ConfigError) as caught:
        checked(clash, SCHEMA)
    assert (
        str(caught.value) == "config: models.rgan makes 'rgan-e2', another model's name: rename one of them"
    )
    clash["models"]["rgan-e1"] = clash["models"].pop("rgan-e2")
    clash["models"]["rgan"]["training"]["keep"] = [2]
    assert "rgan-e1" in Experiment(checked(clash, SCHEMA)).models


def test_an_arm_may_not_be_called_as_a_stage():
    clash = deepcopy(curriculum())
    clash["models"]["gan-plain"] = clash["models"].pop("rgan")
    clash["models"]["gan"]["arms"] = {"plain-e4": {}}
    with pytest.raises(ConfigError) as caught:
        checked(clash, SCHEMA)
    assert str(caught.value).startswith(
        "config: models.gan.arms.plain-e4 makes 'gan-plain-e4', another model"
    )


def test_a_latent_generator_needs_windows():
    endless = deepcopy(curriculum())
    endless["models"]["rgan"]["window"] = "none"
    with pytest.raises(ConfigError, match=r"models\.rgan\.window must be a number"):
        checked(endless, SCHEMA)


def test_models_of_a_protocol_are_those_that_are_measured_under_it():
    known = ["uniform", "lm", "gan-published", "gan-long", "gan-plain"]
    found = Experiment(checked(config(), SCHEMA)).protocols
    assert found == {
        "window-100": [*known, "program", "table"],
        "window-7": [*known, "own"],
        "carried": known,
    }


@pytest.mark.parametrize(
    ("corpus", "alike"),
    [
        ({"source": "bundled"}, True),
        ({"source": "text8"}, True),
        ({"source": "bundled", "unit": "word"}, False),
    ],
)
def test_published_bits_are_per_character_of_text8(corpus: dict, alike: bool):
    assert Experiment(checked(config() | {"corpus": corpus}, SCHEMA)).is_text8 == alike


def test_claims_on_adversarial_training_look_at_the_weights_it_ended_with():
    asked = experiment().questions
    assert asked["arms"] == {f"gan-{arm}-last": "lm" for arm in ("published", "long", "plain")}
    assert asked["reproduced"] == {}, "none of them trains at the published rate"
    found = experiment(training__learning_rate=0.01)
    assert set(found.questions["reproduced"]) == {"gan-published-last"}
    assert found.compared == ["gan-published-last", "gan-long-last", "gan-plain-last", "lm"]
    assert set(asked["arms"]) <= set(found.judged)


def test_an_arm_with_other_settings_than_the_published_ones_is_a_control():
    """The learning rate counts, the length of training does not."""
    arms = {
        "published": PUBLISHED,
        "long": PUBLISHED | {"epochs": 30},
        "shuffled": PUBLISHED | {"shuffle": True},
        "constant": PUBLISHED | {"reward": "constant"},
        "slow": PUBLISHED | {"learning_rate": 0.0001},
        "plain": {},
    }
    asked = experiment(arms=arms, training__learning_rate=0.01).questions
    odd = ("shuffled", "constant", "slow", "plain")
    assert asked["controls"] == [f"gan-{arm}{end}" for arm in odd for end in ("", "-last")]
    assert asked["partners"] == ["lm", "gan-published-last", "gan-long-last"]


def test_gans_are_compared_with_the_model_that_is_named_and_no_other():
    assert experiment().questions["opponents"] == {}
    named = config() | {"findings": {"language_model": "uniform"}}
    named["evaluation"] = named["evaluation"] | {"baseline": "lm"}
    found = Experiment(checked(named, SCHEMA))
    assert set(found.questions["opponents"].values()) == {"uniform"}
    assert "uniform" in found.judged


@pytest.mark.parametrize("name", ["lm", "gan-plain"])
def test_no_gan_is_compared_with_its_own_start_or_itself(name):
    with pytest.raises(ConfigError, match=f"findings.language_model names '{name}', but gan-[a-z]+ is compa"):
        checked(config() | {"findings": {"language_model": name}}, SCHEMA)


@pytest.mark.parametrize("name", ["config", "text8", "text8-cpu", "tiny"])
def test_shipped_configs_name_a_language_model_and_train_as_published(name):
    block = yaml.safe_load((SCHEMA.parents[2] / f"config/{name}.yaml").read_text())
    asked = Experiment(checked(block, SCHEMA)).questions
    assert set(asked["opponents"]) == set(asked["gans"]) != set()
    assert "seqgan-published-last" in asked["partners"]
