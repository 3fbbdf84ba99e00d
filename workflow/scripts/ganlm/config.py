"""A config that is complete and possible, or one sentence that says where it is not."""

import csv
import math
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend


class ConfigError(ValueError):
    """What is wrong with a config, where, and what would be right."""


def checked(config: dict, schema_path: Path, literature_path: Path | None = None) -> dict:
    """`config` with every default filled in; raises ConfigError where it cannot work."""
    schema = yaml.safe_load(schema_path.read_text())
    config = deepcopy(config)
    if error := best_match(_Validator(schema).iter_errors(config)):
        raise ConfigError(f"config: {_sentence(error)}")
    _check_arms(config["models"], schema)
    for contradiction in _contradictions(config):
        raise ConfigError(f"config: {contradiction}")
    if literature_path:
        _check_papers(config, literature_path)
    return config


def expanded(models: dict) -> dict:
    """The models as rows: one that has arms becomes `<name>-<arm>`, one for each.

    An arm knows the architecture of the language model it starts from.
    """
    rows = {}
    for name, block in models.items():
        if block["kind"] != "seqgan":
            rows[name] = block
            continue
        start = models[block["start"]]
        architecture = {key: start[key] for key in ("embedding", "hidden", "layers", "dropout")}
        for arm, changes in block["arms"].items():
            shared = {key: value for key, value in block.items() if key != "arms"}
            training = block["training"] | changes
            rows[f"{name}-{arm}"] = shared | {"architecture": architecture, "training": training}
    return rows


def _check_arms(models: dict, schema: dict) -> None:
    """Every arm must be possible, start from a language model, and have names of its own."""
    taken = {name for name, block in models.items() if block["kind"] != "seqgan"}
    for name, block in models.items():
        if block["kind"] != "seqgan":
            continue
        if models.get(block["start"], {}).get("kind") != "lstm":
            raise ConfigError(
                f"config: models.{name}.start is {block['start']!r}, which is no model of kind lstm"
            )
        for arm, changes in block["arms"].items():
            where = f"models.{name}.arms.{arm}"
            _check_changes(where, block["training"], changes, schema["$defs"]["adversarial"])
            keep = changes.get("keep", block["training"]["keep"])
            mine = {f"{name}-{arm}", *(f"{name}-{arm}-e{epoch}" for epoch in keep)}
            if twice := sorted(mine & taken):
                raise ConfigError(
                    f"config: {where} makes {twice[0]!r}, another model's name: rename one of them"
                )
            taken |= mine


def _check_changes(where: str, training: dict, changes: object, schema: dict) -> None:
    if not isinstance(changes, dict):
        raise ConfigError(f"config: {where} must be of type object, not {changes!r}")
    training = training | changes
    if error := best_match(_Validator(schema).iter_errors(training)):
        raise ConfigError(f"config: {_sentence(error, where)}")
    if max(training["keep"]) > training["epochs"]:
        raise ConfigError(f"config: {where} keeps epochs after its last, {training['epochs']}")


def _check_papers(config: dict, literature_path: Path) -> None:
    with literature_path.open(encoding="utf-8", newline="") as lines:
        known = [row["id"] for row in csv.DictReader(lines)]
    for name, block in config["models"].items():
        if block["paper"] is not None and block["paper"] not in known:
            raise ConfigError(
                f"config: models.{name}.paper is {block['paper']!r}, not an id in {literature_path.name}: "
                f"{', '.join(known)}"
            )


def _fill_defaults(
    validator: Draft202012Validator, properties: dict, instance: object, schema: dict
) -> Iterator[ValidationError]:
    """The `properties` keyword, which first sets what is missing to its default."""
    if isinstance(instance, dict):
        for key, subschema in properties.items():
            if "default" in subschema:
                instance.setdefault(key, deepcopy(subschema["default"]))
    yield from Draft202012Validator.VALIDATORS["properties"](validator, properties, instance, schema)


def _is_integer(_: TypeChecker, value: object) -> bool:
    """JSON counts 3.0 as a whole number; Python cannot index with it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(checker: TypeChecker, value: object) -> bool:
    """YAML knows .nan, which passes every comparison."""
    return _is_integer(checker, value) or (isinstance(value, float) and math.isfinite(value))


_Validator = extend(
    Draft202012Validator,
    {"properties": _fill_defaults},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


def _sentence(error: ValidationError, *above: str) -> str:
    where = ".".join(map(str, (*above, *error.absolute_path))) or "the top level"
    match error.validator:
        case "additionalProperties":
            known = list(error.schema.get("properties", {}))
            unknown = sorted(set(error.instance) - set(known), key=str)
            return f"{where} has the unknown key {unknown[0]!r}; known keys: {', '.join(known)}"
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            return f"{where} lacks the key {missing[0]!r}"
        case "type" if "propertyNames" in error.absolute_schema_path:
            return f"{where} has the key {error.instance!r}, which is not text; put it in quotes"
        case "type":
            wanted = error.validator_value
            wanted = wanted if isinstance(wanted, str) else " or ".join(wanted)
            return f"{where} must be of type {wanted}, not {error.instance!r}"
        case "enum":
            known = ", ".join(map(str, error.validator_value))
            return f"{where} is {error.instance!r}; it must be one of {known}"
        case "anyOf":
            word = next(option["const"] for option in error.validator_value if "const" in option)
            least = next(option["minimum"] for option in error.validator_value if "minimum" in option)
            return f"{where} is {error.instance!r}; it must be a whole number from {least} on, or `{word}`"
        case "pattern":
            return f"{where}: {error.instance!r} does not fit; wanted: {error.schema['description']}"
    return f"{where}: {error.message}"


def _contradictions(config: dict) -> Iterator[str]:
    """What a schema cannot say: keys that must fit each other."""
    corpus = config["corpus"]
    if (corpus["source"] == "file") != (corpus["path"] is not None):
        yield "corpus.path goes with `corpus.source: file`, and only with it"
    if abs(sum(corpus["split"]) - 1) > 1e-9:
        yield f"corpus.split must add up to 1, not to {sum(corpus['split']):g}"
    if corpus["vocabulary"] and corpus["unit"] == "character" and corpus["alphabet"] == "text8":
        yield "corpus.vocabulary goes with `unit: word` or `alphabet: observed`: text8 has exactly 27 symbols"
    windows = config["evaluation"]["windows"]
    for name, block in config["models"].items():
        if block["window"] is not None and block["window"] not in windows:
            yield f"models.{name}.window is {block['window']}, which is not in evaluation.windows {windows}"
    lists = {
        "table1": config["table1"] or [],
        "choose_n.models": config["choose_n"]["models"],
        "evaluation.baseline": [config["evaluation"]["baseline"]] if config["evaluation"]["baseline"] else [],
    }
    rows = expanded(config["models"])
    for key, names in lists.items():
        for name in names:
            if name not in rows:
                yield f"{key} names {name!r}, which is not in models: {', '.join(rows)}"
    yield from _impossible_measurements(config)


def _impossible_measurements(config: dict) -> Iterator[str]:
    """What cannot be measured of a generator that only emits draws."""
    evaluation = config["evaluation"]
    for name, block in config["models"].items():
        window = block["window"] or evaluation["windows"][0]
        if block["kind"] in ("python", "command", "counts") and window == "none":
            yield f"models.{name}.window must be a number: a prefix without end cannot be sent"
        if block["kind"] == "counts" and evaluation["draws"] == "chosen":
            yield f"models.{name} has a fixed number of draws, so evaluation.draws cannot be `chosen`"
        if block["kind"] == "counts" and name in config["choose_n"]["models"]:
            yield f"choose_n.models names {name!r}: a table of counts has no draws left to choose"
