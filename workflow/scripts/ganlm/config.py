"""A config that is complete and possible, or one sentence that says where it is not."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend


class ConfigError(ValueError):
    """What is wrong with a config, where, and what would be right."""


def checked(config: dict, schema_path: Path) -> dict:
    """`config` with every default filled in; raises ConfigError where it cannot work."""
    schema = yaml.safe_load(schema_path.read_text())
    config = deepcopy(config)
    if error := best_match(_Validator(schema).iter_errors(config)):
        raise ConfigError(f"config: {_sentence(error)}")
    for contradiction in _contradictions(config):
        raise ConfigError(f"config: {contradiction}")
    return config


def _fill_defaults(
    validator: Draft202012Validator, properties: dict, instance: object, schema: dict
) -> Iterator[ValidationError]:
    """The `properties` keyword, which first sets what is missing to its default."""
    if isinstance(instance, dict):
        for key, subschema in properties.items():
            if "default" in subschema:
                instance.setdefault(key, deepcopy(subschema["default"]))
    yield from Draft202012Validator.VALIDATORS["properties"](validator, properties, instance, schema)


_Validator = extend(Draft202012Validator, {"properties": _fill_defaults})


def _sentence(error: ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path)) or "the top level"
    match error.validator:
        case "additionalProperties":
            known = list(error.schema.get("properties", {}))
            unknown = sorted(set(error.instance) - set(known))
            return f"{where} has the unknown key {unknown[0]!r}; known keys: {', '.join(known)}"
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            return f"{where} lacks the key {missing[0]!r}"
        case "type":
            wanted = error.validator_value
            wanted = wanted if isinstance(wanted, str) else " or ".join(wanted)
            return f"{where} must be of type {wanted}, not {error.instance!r}"
        case "enum":
            known = ", ".join(map(str, error.validator_value))
            return f"{where} is {error.instance!r}; it must be one of {known}"
        case "anyOf":
            return f"{where} is {error.instance!r}; it must be a positive whole number or `none`"
        case "pattern":
            return (
                f"{where}: {error.instance!r} is no name; use letters, digits and single . _ - between them"
            )
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
    for name in config["table1"] or []:
        if name not in config["models"]:
            yield f"table1 names {name!r}, which is not in models: {', '.join(config['models'])}"
