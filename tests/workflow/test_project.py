"""Files that must say the same thing do."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from clone import ROOT, Clone, run, succeed

PIP_NAMES = {"pytorch": "torch", "snakemake-minimal": "snakemake", "matplotlib-base": "matplotlib"}
CONDA_ALONE = {"python", "pip"}
MADE = {"results/", ".venv/"}


def pip_versions(lines: list[str]) -> dict[str, str]:
    pins = (line.split("#")[0].strip() for line in lines)
    return dict(pin.split("==") for pin in pins if pin)


def conda_versions(dependencies: list[str | dict]) -> dict[str, str]:
    versions = {}
    for pin in dependencies:
        if isinstance(pin, dict):
            versions |= pip_versions(pin["pip"])
        else:
            name, _, version = pin.partition("=")
            versions[PIP_NAMES.get(name, name)] = version
    return {name: version for name, version in versions.items() if name not in CONDA_ALONE}


def test_pip_and_conda_install_the_same_versions():
    pip = pip_versions((ROOT / "requirements.txt").read_text().splitlines())
    conda = conda_versions(yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"])
    assert pip == conda
    assert pip["torch"] == "2.13.0"


def test_make_help_explains_every_target():
    lines = succeed("make", "--silent", "help", cwd=ROOT).splitlines()
    explained = {name for name, text in (line.split(maxsplit=1) for line in lines) if text}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert explained >= {"demo", "test", "lint", "bench", "paper", "clean"}
    assert explained == set(targets) - {"run"}


def test_snakemake_and_snakefmt_find_no_fault(repository: Clone):
    repository.run("--lint", config=None)
    succeed("snakefmt", "--check", "Snakefile", "workflow", cwd=repository.path)


def test_every_rule_has_a_log_and_an_environment():
    rules = dict(
        re.findall(
            r"^rule (\w+):\n((?:(?: {4}.*)?\n)+)",
            "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))),
            re.MULTILINE,
        )
    )
    assert {"split_corpus", "train_ngram", "approx_evaluate", "render_table1"} <= set(rules)
    for directive in ("log", "conda"):
        assert [name for name, body in rules.items() if f"    {directive}:\n" not in body] == []


def test_every_stage_has_a_rule_and_every_rule_its_stage():
    scripts = {path.name for path in (ROOT / "workflow/scripts").glob("*.py")}
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert set(re.findall(r'"\.\./scripts/(\w+\.py)"', rules)) == scripts
    assert set(re.findall(r'code\(\s*"(\w+\.py)"', rules)) == scripts


def test_no_file_holds_the_marker_of_a_merge_conflict():
    """git prints such lines with their place, and exits with 1 where there are none."""
    found = run("git", "grep", "-I", "-n", "-E", "^(<{7}|>{7})", cwd=ROOT)
    assert (found.returncode, found.stdout) == (1, "")


def layout() -> set[str]:
    """Paths in the first code block of the README's section on layout.

    An indented name is inside the folder above it; two spaces or a # end the names of a line.
    """
    section = re.split(r"^#+ .*layout.*$", read("README.md"), flags=re.MULTILINE | re.IGNORECASE)[1]
    paths, folders = set(), []
    for line in re.search(r"```\w*\n(.*?)```", section, re.DOTALL)[1].splitlines():
        indent, names = re.match(r"([\s│├└─]*)(.*)", line).groups()
        folders = [(depth, folder) for depth, folder in folders if depth < len(indent)]
        for name in re.split(r"\s{2,}|\s*#", names)[0].split():
            path = (folders[-1][1] if folders else "") + name
            paths.update(expanded(path))
            if name.endswith("/"):
                folders.append((len(indent), path))
    return paths


def expanded(path: str) -> Iterator[str]:
    """`{a,b}.py` is `a.py` and `b.py`."""
    if alternatives := re.search(r"\{([^}]*)\}", path):
        for choice in alternatives[1].split(","):
            yield from expanded(path[: alternatives.start()] + choice + path[alternatives.end() :])
    else:
        yield path


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def is_there(path: str) -> bool:
    return any(ROOT.glob(re.sub(r"<\w+>", "*", path.removesuffix("/"))))


def test_the_layout_in_the_readme_is_the_layout():
    named = layout()
    assert {path for path in named if not is_there(path)} <= MADE
    library = (path for path in (ROOT / "workflow/scripts/ganlm").rglob("*.py") if path.stem != "__init__")
    assert {path.relative_to(ROOT).as_posix() for path in library} - named == set()


def schema_keys(schema: dict, root: dict, path: str = "", kind: str = "") -> Iterator[tuple[str, str, dict]]:
    """Every key that holds a value: the kind of model it belongs to, its dotted path, its schema."""
    if "$ref" in schema:
        schema = root["$defs"][Path(schema["$ref"]).name] | schema
    below = list(schema.get("properties", {}).items())
    if isinstance(free := schema.get("additionalProperties"), dict):
        below.append(("<name>", free))
    for key, child in below:
        yield from schema_keys(child, root, f"{path}.{key}" if path else key, kind)
    for branch in schema.get("allOf", []):
        yield from schema_keys(branch["then"], root, path, branch["if"]["properties"]["kind"]["const"])
    if not below and "allOf" not in schema and "const" not in schema:
        yield kind, path, schema


def documented_keys() -> Iterator[tuple[str, str, str]]:
    """Of every table row in config/README.md: the kind whose section it is in, the key, its default."""
    kind, header = "", []
    for line in read("config/README.md").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("#"):
            named = re.fullmatch(r"### `(\w+)`", line)
            kind = named[1] if named else ""
        elif any(cell.lower() == "default" for cell in cells):
            header = [cell.lower() for cell in cells]
        elif header and cells and re.fullmatch(r"`[^`]+`", cells[0]):
            yield kind, cells[0].strip("`"), cells[header.index("default")]


def test_every_key_of_the_schema_is_documented_and_no_other():
    """Under its kind, or under the first kind that has it, or where every kind is."""
    schema = yaml.safe_load(read("workflow/schemas/config.schema.yaml"))
    keys = {(kind, key) for kind, key, _ in schema_keys(schema, schema)}
    documented = [(kind, key) for kind, key, _ in documented_keys()]
    assert {("", "name"), ("", "corpus.source"), ("ngram", "models.<name>.order")} <= keys
    assert len(documented) == len(set(documented))
    assert {key for _, key in keys} == {key for _, key in documented}
    assert {(kind, key) for kind, key in documented if kind} <= keys


def test_documented_defaults_are_those_of_the_schema():
    schema = yaml.safe_load(read("workflow/schemas/config.schema.yaml"))
    documented = list(documented_keys())
    for kind, key, block in schema_keys(schema, schema):
        cells = {where: cell for where, name, cell in documented if name == key}
        cell = cells.get(kind, next(iter(cells.values())))
        if "default" in block:
            assert yaml.safe_load(cell.strip("`")) == block["default"], (kind, key)
        else:
            assert not re.search("`", cell), (
                f"{key} of {kind} has no default, but config/README.md says {cell}"
            )
