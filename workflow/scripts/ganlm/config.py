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

from ganlm.expansion import ARCHITECTURE, expanded, kept_lengths, seeded

JUDGEMENT = ("validate_every", "validation_tokens", "validation_window", "seed")


class ConfigError(ValueError):
    """What is wrong with a config, where, and what would be right."""


def checked(config: dict, schema_path: Path, literature_path: Path | None = None) -> dict:
    """`config` with every default filled in; raises ConfigError where it cannot work."""
    schema = yaml.safe_load(schema_path.read_text())
    config = deepcopy(config)
    if error := best_match(_Validator(schema).iter_errors(config)):
        raise ConfigError(f"config: {_sentence(error)}")
    _check_curricula(config["models"])
    _check_arms(config["models"], schema)
    _check_names(config["models"], config["seeds"])
    _check_grids(config, schema)
    for contradiction in _contradictions(config):
        raise ConfigError(f"config: {contradiction}")
    if literature_path:
        _check_papers(config, literature_path)
    return config


def refuse_repeated_keys(path: Path) -> None:
    """YAML lets the last of two equal keys win: of two models with one name, one would silently vanish."""
    todo = [yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)]
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise ConfigError(f"{path}, line {line}: the key {key.value!r} stands there twice")
                seen.add(key.value)
                todo.append(value)
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def _check_curricula(models: dict) -> None:
    """What is kept must be one of the lengths."""
    for name, block in models.items():
        if block["kind"] == "recurrent_gan":
            lengths = block["training"]["lengths"]
            for length in set(block["training"]["keep"] or ()) - set(lengths):
                raise ConfigError(
                    f"config: models.{name}.training keeps {length}, none of its lengths {lengths}"
                )


def _check_arms(models: dict, schema: dict) -> None:
    """Every arm must be possible, and start from a language model."""
    for name, block in models.items():
        if block["kind"] != "seqgan":
            continue
        where, adversarial = f"models.{name}", schema["$defs"]["adversarial"]
        if models.get(block["start"], {}).get("kind") != "lstm":
            raise ConfigError(f"config: {where}.start is {block['start']!r}, which is no model of kind lstm")
        for arm, changes in block["arms"].items():
            _check_changes(f"{where}.arms.{arm}", block["training"], changes, adversarial)


def _check_names(models: dict, seeds: list[int]) -> None:
    """What training makes of a model has names of its own: they are file names and table rows."""
    taken = {name for name, block in models.items() if block["kind"] != "seqgan"}
    for where, names in _made_names(models, seeds):
        if twice := sorted(names & taken):
            raise ConfigError(f"config: {where} makes {twice[0]!r}, another model's name: rename one of them")
        taken |= names


def _made_names(models: dict, seeds: list[int]) -> Iterator[tuple[str, set[str]]]:
    """Where in the config -> the names it stands for beside its own, arms last."""
    arms = []
    for name, block in models.items():
        where, training = f"models.{name}", block.get("training")
        match block["kind"]:
            case "lstm":
                yield where, _with_seeds(name, seeds, ["last"]) - {name}
            case "recurrent_gan":
                yield where, _with_seeds(name, seeds, [f"e{n}" for n in kept_lengths(block)]) - {name}
            case "seqgan":
                for arm, changes in block["arms"].items():
                    keep = [f"e{epoch}" for epoch in (training | changes)["keep"]]
                    mine = _with_seeds(f"{name}-{arm}", seeds, ["last", *keep])
                    arms.append((f"{where}.arms.{arm}", mine))
    yield from arms


def _with_seeds(row: str, seeds: list[int], parts: list[str]) -> set[str]:
    """A row, its seeds, and what is kept of the training of each."""
    names = seeded(row, seeds)
    return {row, *names, *(f"{name}-{part}" for name in names for part in parts)}


def _check_changes(where: str, training: dict, changes: object, schema: dict) -> None:
    if not isinstance(changes, dict):
        raise ConfigError(f"config: {where} must be of type object, not {changes!r}")
    training = training | changes
    if error := best_match(_Validator(schema).iter_errors(training)):
        raise ConfigError(f"config: {_sentence(error, where)}")
    if max(training["keep"]) > training["epochs"]:
        raise ConfigError(f"config: {where} keeps epochs after its last, {training['epochs']}")


def _check_grids(config: dict, schema: dict) -> None:
    """Every point must be possible, and judged as all others of its grid."""
    lstm, mle = (schema["$defs"][kind]["properties"] for kind in ("lstm", "mle"))
    known = {key: lstm[key] for key in ARCHITECTURE} | mle
    for name, block in config["tune"].items():
        where, model = f"tune.{name}", block["model"]
        if config["models"].get(model, {}).get("kind") != "lstm":
            raise ConfigError(f"config: {where}.model is {model!r}, which is no model of kind lstm")
        for key, values in block["grid"].items():
            if key in JUDGEMENT:
                raise ConfigError(
                    f"config: {where}.grid.{key}: points are compared, so they must share it; "
                    f"set it in models.{model}.training"
                )
            if key not in known:
                free = ", ".join(key for key in known if key not in JUDGEMENT)
                raise ConfigError(f"config: {where}.grid has the unknown key {key!r}; known keys: {free}")
            one_of = {"items": known[key]}
            if error := best_match(_Validator(one_of).iter_errors(values)):
                raise ConfigError(f"config: {_sentence(error, where, 'grid', key)}")


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
            return f"{where} must be of type {wanted}, not {error.instance!r}{_yaml_hint(error.instance)}"
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


def _yaml_hint(value: object) -> str:
    """YAML reads 1e-3 as text, because it has no point."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return ""
    return f"; write {number!r} without quotes" if math.isfinite(number) else ""


def _contradictions(config: dict) -> Iterator[str]:
    """What a schema cannot say: keys that must fit each other."""
    corpus = config["corpus"]
    if (corpus["source"] == "file") != (corpus["path"] is not None):
        yield "corpus.path goes with `corpus.source: file`, and only with it"
    for where, path in _paths(config):
        if set("{}<>") & set(path):
            yield f"{where}: Snakemake takes the brackets of {path!r} for a wildcard; rename that file"
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
        "sweep.models": config["sweep"]["models"],
    }
    rows = expanded(config["models"])
    for key, names in lists.items():
        for name in names:
            if name not in rows:
                yield f"{key} names {name!r}, which is not in models: {', '.join(rows)}"
    yield from _strange_references(config, rows)
    yield from _impossible_measurements(config)


def _strange_references(config: dict, rows: dict) -> Iterator[str]:
    """Every model is compared with one, of several seeds too; every GAN with one that owes it nothing."""
    known = expanded(config["models"], config["seeds"])
    name = config["evaluation"]["baseline"]
    if name is not None and name not in known:
        if name in rows:
            seeds = ", ".join(seeded(name, config["seeds"]))
            yield f"evaluation.baseline names {name!r}, which has several seeds: name one of {seeds}"
        yield f"evaluation.baseline names {name!r}, which is not in models: {', '.join(known)}"
    name = config["findings"]["language_model"]
    if name is not None:
        yield from _no_independent_model(name, rows)


def _no_independent_model(name: str, rows: dict) -> Iterator[str]:
    """A GAN is compared with the language model it starts from by another claim."""
    where = f"findings.language_model names {name!r}"
    if name not in rows:
        yield f"{where}, which is not in models: {', '.join(rows)}"
    for gan, block in rows.items():
        if block["kind"] in ("seqgan", "recurrent_gan") and name in (gan, block.get("start")):
            yield f"{where}, but {gan} is compared with it: name a model that is trained apart"


def _paths(config: dict) -> Iterator[tuple[str, str]]:
    """Where in the config -> the files that it names."""
    if config["corpus"]["path"] is not None:
        yield "corpus.path", config["corpus"]["path"]
    for name, block in config["models"].items():
        for key in ("object", "file"):
            if key in block:
                yield f"models.{name}.{key}", block[key]
        for path in block.get("files", []):
            yield f"models.{name}.files", path


def _impossible_measurements(config: dict) -> Iterator[str]:
    """What cannot be measured of a generator that only emits draws."""
    evaluation = config["evaluation"]
    for name, block in config["models"].items():
        window = block["window"] or evaluation["windows"][0]
        if block["kind"] in ("recurrent_gan", "python", "command", "counts") and window == "none":
            yield f"models.{name}.window must be a number: a prefix without end cannot be sent"
        if block["kind"] == "counts" and evaluation["draws"] == "chosen":
            yield f"models.{name} has a fixed number of draws, so evaluation.draws cannot be `chosen`"
        if block["kind"] == "counts" and name in config["choose_n"]["models"]:
            yield f"choose_n.models names {name!r}: a table of counts has no draws left to choose"
        estimates = {"recurrent_gan": "mean-softmax", "command": "harmonic"}.get(block["kind"])
        if name in config["sweep"]["models"] and estimates not in (None, *evaluation["estimators"]):
            yield f"sweep.models names {name!r}, so evaluation.estimators must have `{estimates}`"
        if block["kind"] == "counts" and name in config["sweep"]["models"]:
            yield f"sweep.models names {name!r}: a table of counts was made for one window"
