from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from ganlm.config import ConfigError, checked, refuse_repeated_keys

ROOT = Path(__file__).parents[2]
SCHEMA_PATH = ROOT / "workflow/schemas/config.schema.yaml"
SCHEMA = yaml.safe_load(SCHEMA_PATH.read_text())
KINDS = SCHEMA["properties"]["models"]["additionalProperties"]["properties"]["kind"]["enum"]
MINIMAL = {"name": "x", "corpus": {"source": "bundled"}, "models": {"a": {"kind": "ngram", "order": 3}}}


def changed(**changes):
    """The minimal config with some values replaced, each named by its path."""
    config = deepcopy(MINIMAL)
    for path, value in changes.items():
        *above, last = path.split("__")
        block = config
        for key in above:
            block = block.setdefault(key, {})
        block[last] = value
    return config


LSTM = {"kind": "lstm", "embedding": 8, "hidden": 8, "training": {"epochs": 1}}


def tuned(**changes):
    """The minimal config with a language model and a grid, of whose block some values are replaced."""
    return changed(models__lm=LSTM, tune__t={"model": "lm", "grid": {"hidden": [8, 16]}} | changes)


BAD = {
    "unknown top-level key": (
        changed(evalution={}),
        "the top level has the unknown key 'evalution'; known keys: name, corpus, models",
    ),
    "unknown keys of mixed types": (MINIMAL | {1: 2, "foo": 3}, "the top level has the unknown key 1"),
    "unknown corpus key": (changed(corpus__spilt=1), "corpus has the unknown key 'spilt'"),
    "unknown model key": (changed(models__a__ordre=2), "models.a has the unknown key 'ordre'"),
    "key of another kind": (
        changed(models__b={"kind": "uniform", "order": 2}),
        "models.b has the unknown key 'order'; known keys: kind, window, paper",
    ),
    "unknown evaluation key": (changed(evaluation__window=7), "evaluation has the unknown key 'window'"),
    "no name": ({k: v for k, v in MINIMAL.items() if k != "name"}, "lacks the key 'name'"),
    "no corpus": ({k: v for k, v in MINIMAL.items() if k != "corpus"}, "lacks the key 'corpus'"),
    "no models": ({k: v for k, v in MINIMAL.items() if k != "models"}, "lacks the key 'models'"),
    "no source": (changed(corpus={}), "corpus lacks the key 'source'"),
    "no kind": (changed(models__b={"order": 3}), "models.b lacks the key 'kind'"),
    "no order": (changed(models__b={"kind": "ngram"}), "models.b lacks the key 'order'"),
    "empty models": (changed(models={}), "models: {} should be non-empty"),
    "name is a number": (changed(name=3), "name must be of type string, not 3"),
    "name is a path": (changed(name="../x"), "name: '../x' does not fit; wanted: Letters"),
    "name ends a line": (changed(name="demo\n"), "name: 'demo\\n' does not fit"),
    "model name is a path": (
        changed(models={"a/b": {"kind": "uniform"}}),
        "models: 'a/b' does not fit; wanted: Letters, digits",
    ),
    "model name with a brace": (
        changed(models={"{a}": {"kind": "uniform"}}),
        "models: '{a}' does not fit; wanted: Letters, digits",
    ),
    "model name is a number": (
        changed(models={7: {"kind": "uniform"}}),
        "models has the key 7, which is not",
    ),
    "model is a number": (changed(models__b=3), "models.b must be of type object, not 3"),
    "unknown kind": (
        changed(models__b={"kind": "lstn"}),
        "models.b.kind is 'lstn'; it must be one of uniform, ngram",
    ),
    "order zero": (changed(models__a__order=0), "models.a.order: 0 is less than the minimum of 1"),
    "order too high": (changed(models__a__order=21), "models.a.order: 21 is greater than the maximum"),
    "order is text": (changed(models__a__order="3"), "models.a.order must be of type integer, not '3'"),
    "order is a float": (changed(models__a__order=3.0), "models.a.order must be of type integer, not 3.0"),
    "order is a truth value": (
        changed(models__a__order=True),
        "models.a.order must be of type integer, not T",
    ),
    "rate that YAML reads as text": (
        tuned() | {"models": {"lm": LSTM | {"training": {"epochs": 1, "learning_rate": "1e-3"}}}},
        "models.lm.training.learning_rate must be of type number, not '1e-3'; write 0.001 without quotes",
    ),
    "unknown smoothing": (
        changed(models__a__smoothing="kn"),
        "models.a.smoothing is 'kn'; it must be one of witten-bell, kneser-ney",
    ),
    "paper is a number": (changed(models__a__paper=3), "models.a.paper must be of type string or null"),
    "window not evaluated": (
        changed(models__a__window=5),
        "models.a.window is 5, which is not in evaluation.windows [1000, 'none']",
    ),
    "window by its shown name": (
        changed(models__a__window="carried"),
        "models.a.window is 'carried'; it must be",
    ),
    "corpus is null": (changed(corpus=None), "corpus must be of type object, not None"),
    "unknown source": (
        changed(corpus__source="web"),
        "corpus.source is 'web'; it must be one of bundled, text8, file",
    ),
    "file without path": (changed(corpus__source="file"), "corpus.path goes with `corpus.source: file`"),
    "path without file": (changed(corpus__path="x"), "corpus.path goes with `corpus.source: file`"),
    "empty path": (changed(corpus={"source": "file", "path": ""}), "corpus.path: '' should be non-empty"),
    "path with braces": (
        changed(corpus={"source": "file", "path": "a{b}"}),
        "corpus.path: Snakemake takes the brackets of 'a{b}' for a wildcard; rename that file",
    ),
    "file of a generator with brackets": (
        changed(models__b={"kind": "python", "object": "a.py:A", "files": ["<b>"]}),
        "models.b.files: Snakemake takes the brackets of '<b>' for a wildcard; rename that file",
    ),
    "few characters": (changed(corpus__characters=0), "corpus.characters: 0 is less than the minimum of 100"),
    "float characters": (changed(corpus__characters=2e6), "corpus.characters must be of type integer"),
    "unknown unit": (
        changed(corpus__unit="byte"),
        "corpus.unit is 'byte'; it must be one of character, word",
    ),
    "unknown alphabet": (changed(corpus__alphabet="ascii"), "corpus.alphabet is 'ascii'; it must be one of"),
    "vocabulary of one": (
        changed(corpus__vocabulary=1),
        "corpus.vocabulary: 1 is less than the minimum of 2",
    ),
    "vocabulary of text8": (changed(corpus__vocabulary=9), "corpus.vocabulary goes with `unit: word` or"),
    "split in two": (changed(corpus__split=[0.9, 0.1]), "corpus.split: [0.9, 0.1] is too short"),
    "split in four": (
        changed(corpus__split=[0.25] * 4),
        "corpus.split: [0.25, 0.25, 0.25, 0.25] is too long",
    ),
    "split above one": (
        changed(corpus__split=[0.9, 0.05, 0.06]),
        "corpus.split must add up to 1, not to 1.01",
    ),
    "empty part": (changed(corpus__split=[0.5, 0.5, 0]), "corpus.split.2: 0 is less than or equal to"),
    "split is not a number": (
        changed(corpus__split=[float("nan"), 0.5, 0.5]),
        "corpus.split.0 must be of type number",
    ),
    "split is one number": (changed(corpus__split=0.9), "corpus.split must be of type array, not 0.9"),
    "evaluation is null": (changed(evaluation=None), "evaluation must be of type object, not None"),
    "no windows": (changed(evaluation__windows=[]), "evaluation.windows: [] should be non-empty"),
    "window zero": (changed(evaluation__windows=[7, 0]), "evaluation.windows.1: 0 is less than the minimum"),
    "window null": (
        changed(evaluation__windows=[None]),
        "evaluation.windows.0 is None; it must be",
    ),
    "window is a float": (
        changed(evaluation__windows=[7.5]),
        "evaluation.windows.0 is 7.5; it must be",
    ),
    "same window twice": (changed(evaluation__windows=[7, 7]), "evaluation.windows: [7, 7] has non-unique"),
    "windows is a number": (
        changed(evaluation__windows=7),
        "evaluation.windows must be of type array, not 7",
    ),
    "block of one": (changed(evaluation__block=1), "evaluation.block: 1 is less than the minimum of 10"),
    "level in percent": (changed(evaluation__level=95), "evaluation.level: 95 is greater than or equal to"),
    "level is not a number": (
        changed(evaluation__level=float("nan")),
        "evaluation.level must be of type number",
    ),
    "one draw": (changed(evaluation__draws=1), "evaluation.draws: 1 is less than the minimum of 2"),
    "unknown estimator": (
        changed(evaluation__estimators=["plugin"]),
        "evaluation.estimators.0 is 'plugin'; it must be one of plug-in,",
    ),
    "a strange baseline": (
        changed(evaluation__baseline="b"),
        "evaluation.baseline names 'b', which is not in",
    ),
    "convergence of strangers": (
        changed(choose_n__models=["b"]),
        "choose_n.models names 'b', which is not in",
    ),
    "windows of strangers": (changed(sweep__models=["b"]), "sweep.models names 'b', which is not in"),
    "windows without an estimate": (
        changed(
            models__b={"kind": "command", "command": ["x"]},
            sweep__models=["b"],
            evaluation__estimators=["ibs"],
        ),
        "sweep.models names 'b', so evaluation.estimators must have `harmonic`",
    ),
    "windows of counts": (
        changed(models__b={"kind": "counts", "file": "x.csv"}, sweep__models=["b"]),
        "sweep.models names 'b': a table of counts was made for one window",
    ),
    "class without a name": (
        changed(models__b={"kind": "python", "object": "a.py"}),
        "models.b.object: 'a.py' does not fit; wanted: Where the class is, `path/to/file.py:ClassName`",
    ),
    "program without a window": (
        changed(models__b={"kind": "command", "command": ["x"], "window": "none"}),
        "models.b.window must be a number",
    ),
    "counts of chosen draws": (
        changed(models__b={"kind": "counts", "file": "x.csv"}, evaluation__draws="chosen"),
        "models.b has a fixed number of draws",
    ),
    "grid of a stranger": (tuned(model="b"), "tune.t.model is 'b', which is no model of kind lstm"),
    "grid of counts": (tuned(model="a"), "tune.t.model is 'a', which is no model of kind lstm"),
    "grid without a model": (changed(tune__t={"grid": {"hidden": [8]}}), "tune.t lacks the key 'model'"),
    "unknown key of tune": (tuned(seeds=3), "tune.t has the unknown key 'seeds'; known keys: model, grid"),
    "tune is a list": (changed(tune=[]), "tune must be of type object, not []"),
    "tune called a path": (changed(tune={"../t": {}}), "tune: '../t' does not fit; wanted: Letters, digits"),
    "no grid": (tuned(grid={}), "tune.t.grid: {} should be non-empty"),
    "unknown key of a grid": (
        tuned(grid={"hiden": [8]}),
        "tune.t.grid has the unknown key 'hiden'; known keys: embedding, hidden, layers, dropout, epochs,",
    ),
    "grid of blocks": (tuned(grid={"training": [{}]}), "tune.t.grid has the unknown key 'training'"),
    "key of a grid is a number": (tuned(grid={8: [8]}), "tune.t.grid has the key 8, which is not text"),
    "grid without values": (tuned(grid={"hidden": []}), "tune.t.grid.hidden: [] should be non-empty"),
    "one value is no list": (tuned(grid={"hidden": 8}), "tune.t.grid.hidden must be of type array, not 8"),
    "same point twice": (tuned(grid={"clip": [5, 5.0]}), "tune.t.grid.clip: [5, 5.0] has non-unique elem"),
    "point of the wrong type": (
        tuned(grid={"hidden": [8, "16"]}),
        "tune.t.grid.hidden.1 must be of type integer, not '16'",
    ),
    "impossible point": (
        tuned(grid={"dropout": [0, 1]}),
        "tune.t.grid.dropout.1: 1 is greater than or equal to the maximum of 1",
    ),
    "training of one token": (
        tuned(grid={"window": [20, 1]}),
        "tune.t.grid.window.1: 1 is less than the minimum of 2",
    ),
    "protocol instead of a training window": (
        tuned(grid={"window": ["none"]}),
        "tune.t.grid.window.0 must be of type integer, not 'none'",
    ),
    "unknown schedule in a grid": (
        tuned(grid={"schedule": ["linear"]}),
        "tune.t.grid.schedule.0 is 'linear'; it must be one of constant, cosine",
    ),
    "table of strangers": (changed(table1=["b"]), "table1 names 'b', which is not in models: a"),
    "table is text": (changed(table1="a"), "table1 must be of type array or null, not 'a'"),
    "same row twice": (changed(table1=["a", "a"]), "table1: ['a', 'a'] has non-unique elements"),
    "table without rows": (changed(table1=[]), "table1: [] should be non-empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_config_gets_one_sentence_with_the_key_path(case):
    config, fragment = BAD[case]
    with pytest.raises(ConfigError) as caught:
        checked(config, SCHEMA_PATH)
    sentence = str(caught.value)
    assert sentence.startswith("config: ")
    assert fragment in sentence
    assert "\n" not in sentence
    assert len(sentence) < 250


@pytest.mark.parametrize("key", ["seed", "validate_every", "validation_tokens", "validation_window"])
def test_points_of_a_grid_are_judged_alike(key):
    """Another part of the text, or more looks at it, would give a point better chances than others."""
    with pytest.raises(ConfigError) as caught:
        checked(tuned(grid={key: [1, 2]}), SCHEMA_PATH)
    assert str(caught.value) == (
        f"config: tune.t.grid.{key}: points are compared, so they must share it; set it in models.lm.training"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nmodels:\n  b: {kind: uniform}\n  b: {kind: uniform}\n", "line 4: the key 'b' stands"),
        ("name: a\nname: b\n", "line 2: the key 'name' stands there twice"),
        ("tune: [{a: 1}, {a: 1, b: 2, a: 3}]\n", "line 1: the key 'a' stands there twice"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text, said):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        refuse_repeated_keys(path)
    assert str(caught.value).startswith(f"{path}, {said}")


@pytest.mark.parametrize("text", ["", "a: {x: 1}\nb: {x: 1}\n", "- a\n- a\n"])
def test_equal_keys_of_different_blocks_are_fine(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    refuse_repeated_keys(path)


def test_a_grid_may_vary_everything_else():
    free = {
        "embedding": [8], "hidden": [8], "layers": [1, 2], "dropout": [0, 0.25], "epochs": [1],
        "updates": [1], "batch": [1], "window": [20, 40], "carry": [False, True], "learning_rate": [0.01],
        "decay": [1], "decay_from": [6], "schedule": ["constant", "cosine"], "clip": [5],
        "precision": ["float32"],
    }  # fmt: skip
    assert checked(tuned(grid=free), SCHEMA_PATH)["tune"]["t"]["grid"] == free


def test_defaults_are_filled_on_every_level():
    config = checked(changed(models__u={"kind": "uniform"}), SCHEMA_PATH)
    assert config["corpus"] == {
        "source": "bundled",
        "path": None,
        "characters": None,
        "unit": "character",
        "alphabet": "text8",
        "vocabulary": None,
        "split": [0.9, 0.05, 0.05],
    }
    assert config["models"] == {
        "a": {"kind": "ngram", "order": 3, "smoothing": "witten-bell", "window": None, "paper": None},
        "u": {"kind": "uniform", "window": None, "paper": None},
    }
    assert config["evaluation"]["windows"] == [1000, "none"]
    assert config["evaluation"]["level"] == 0.95
    assert config["table1"] is None
    assert config["tune"] == {}


@pytest.mark.parametrize(
    "block", [key for key, child in SCHEMA["properties"].items() if "properties" in child]
)
def test_a_key_is_required_or_has_a_default(block):
    schema = SCHEMA["properties"][block]
    required = set(schema.get("required", []))
    assert required | {key for key, child in schema["properties"].items() if "default" in child} == set(
        schema["properties"]
    )
    assert set(checked(MINIMAL, SCHEMA_PATH)[block]) == set(schema["properties"])


def test_given_values_win_over_defaults():
    config = changed(
        corpus={
            "source": "file",
            "path": "my.txt",
            "unit": "word",
            "vocabulary": 50,
            "split": [0.5, 0.2, 0.3],
        },
        evaluation={"windows": ["none", 7], "level": 0.9},
        models__a__window=7,
        table1=["a"],
    )
    result = checked(config, SCHEMA_PATH)
    assert {key: result["corpus"][key] for key in config["corpus"]} == config["corpus"]
    assert (result["evaluation"]["windows"], result["evaluation"]["level"]) == (["none", 7], 0.9)
    assert (result["models"]["a"]["window"], result["table1"]) == (7, ["a"])


def test_the_given_config_stays_as_it_was():
    config = deepcopy(MINIMAL)
    first = checked(config, SCHEMA_PATH)
    assert config == MINIMAL
    first["evaluation"]["windows"].append(7)
    assert checked(config, SCHEMA_PATH)["evaluation"]["windows"] == [1000, "none"]


def test_models_do_not_share_their_defaults():
    block = {"kind": "python", "object": "a.py:A"}
    models = checked(changed(models={"a": dict(block), "b": dict(block)}), SCHEMA_PATH)["models"]
    models["a"]["files"].append("x")
    assert models["b"]["files"] == []


def test_a_checked_config_passes_again():
    once = checked(MINIMAL, SCHEMA_PATH)
    assert checked(once, SCHEMA_PATH) == once


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_configs_are_valid(path):
    config = yaml.safe_load(path.read_text())
    assert checked(config, SCHEMA_PATH)["name"] == config["name"]


def properties(schema, path=""):
    """Every property of the schema below `path`, with the path a user would write."""
    for key, child in schema.get("properties", {}).items():
        yield f"{path}{key}", child
        yield from properties(child, f"{path}{key}.")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from properties(schema["additionalProperties"], f"{path}*.")


PROPERTIES = dict(properties(SCHEMA)) | {
    f"{kind}.{key}": child for kind in KINDS for key, child in properties(SCHEMA["$defs"][kind])
}


def resolved(child):
    return SCHEMA["$defs"][child["$ref"].rsplit("/", 1)[1]] | child if "$ref" in child else child


@pytest.mark.parametrize("path", PROPERTIES)
def test_every_key_of_the_schema_is_typed_and_described(path):
    child = resolved(PROPERTIES[path])
    assert {"type", "enum", "const", "anyOf"} & set(child)
    assert path.endswith(".kind") or len(child["description"].split()) > 2


def test_the_schema_is_a_schema_and_knows_every_kind():
    Draft202012Validator.check_schema(SCHEMA)
    assert [SCHEMA["$defs"][kind]["properties"]["kind"]["const"] for kind in KINDS] == KINDS
