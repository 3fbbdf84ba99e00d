"""What a result depends on: fingerprints of code and data, versions of packages.

Snakemake re-runs a stage when its params change. With the fingerprint of the stage's script among
them, an edit re-runs exactly the stages that can reach the edited code, and moving, touching,
reformatting or commenting files re-runs nothing.

The fingerprint follows `import` statements wherever they stand. It cannot see modules imported by
name at run time (`importlib.import_module`, `__all__` behind a star import): callers name those as
further sources.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator, Set
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

_WITHOUT_EFFECT = {"ctx", "kind"}  # follows from the position; the u of u"text"


@dataclass(frozen=True)
class _Import:
    """A dotted name some module imports; `level` counts the leading dots."""

    level: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class _Module:
    """What matters about one source text."""

    digest: str
    imports: tuple[_Import, ...]


def fingerprint(root: Path, *sources: str) -> dict[str, str]:
    """Map each source, and every module below `root` it imports transitively, to a digest.

    Sources are paths relative to `root`, the folder on the import path: `train_ngram.py` or
    `ganlm/models/ngram.py`. The digest is one of the syntax tree without docstrings and without
    what only type checkers see, so it ignores comments, layout, line endings, and where files are.
    """
    files = {path.relative_to(root).as_posix() for path in root.rglob("*.py")}
    todo = [file for source in sources for file in _with_packages(root, source, files)]
    digests: dict[str, str] = {}
    while todo:
        file = todo.pop()
        if file not in digests:
            module = _read(root / file)
            digests[file] = module.digest
            package = PurePosixPath(file).parent.parts
            for imported in module.imports:
                todo.extend(_executed(_absolute(imported, package), files))
    return dict(sorted(digests.items()))


def file_digest(path: Path) -> str:
    """SHA-256 of a data file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_versions(*names: str) -> dict[str, str]:
    """Map packages to their installed versions without importing them: torch takes seconds.

    An absent package is no error: with one environment per rule, the process that plans the run
    need not have what its stages use.
    """
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _with_packages(root: Path, source: str, files: Set[str]) -> Iterator[str]:
    """Yield a source and the `__init__` files that run before it."""
    path = PurePosixPath(source)
    if path.as_posix() not in files:
        raise ValueError(f"{source} is no Python file below {root}: name it relative to that folder")
    yield path.as_posix()
    yield from _executed(path.parent.parts, files)


def _executed(parts: tuple[str, ...], files: Set[str]) -> Iterator[str]:
    """Yield the files that run when a dotted name is imported: its packages, then the module.

    The last part may be a function or class instead, and any part a folder without `__init__`.
    """
    for end in range(1, len(parts) + 1):
        name = "/".join(parts[:end])
        if f"{name}/__init__.py" in files:
            yield f"{name}/__init__.py"
        elif f"{name}.py" in files:
            yield f"{name}.py"


def _absolute(imported: _Import, package: tuple[str, ...]) -> tuple[str, ...]:
    """Resolve leading dots: the first is the importing file's package, each next its parent."""
    if imported.level == 0:
        return imported.parts
    return package[: len(package) + 1 - imported.level] + imported.parts


def _read(path: Path) -> _Module:
    try:
        return _analyse(path.read_bytes())
    except SyntaxError as error:
        raise ValueError(
            f"{path}, line {error.lineno or 1}: not valid Python ({error.msg}); correct that line"
        ) from error


@functools.cache
def _analyse(source: bytes) -> _Module:
    """Parse each text once per process; keyed by content, so an edited file is parsed anew."""
    words: list[str] = []
    statements: list[ast.Import | ast.ImportFrom] = []
    _walk(ast.parse(source), words, statements)
    return _Module(
        digest=hashlib.sha256(" ".join(words).encode()).hexdigest()[:16],
        imports=tuple(dict.fromkeys(name for node in statements for name in _names(node))),
    )


def _walk(value: object, words: list[str], imports: list[ast.Import | ast.ImportFrom]) -> None:
    """Append the words of a syntax tree, and the import statements met on the way.

    Twice as fast as `ast.dump`. Empty fields are left out: new Python versions add some.
    """
    if isinstance(value, ast.AST):
        if isinstance(value, ast.Import | ast.ImportFrom):
            imports.append(value)
        words.append(type(value).__name__)
        words.append("(")
        for field in value._fields:
            child = getattr(value, field)
            if child is not None and child != [] and field not in _WITHOUT_EFFECT:
                words.append(field)
                _walk(child, words, imports)
        words.append(")")
    elif isinstance(value, list):
        words.append("[")
        for item in _effective(value):
            _walk(item, words, imports)
        words.append("]")
    else:
        words.append(repr(value))


def _effective(nodes: list) -> Iterator[object]:
    """Leave out strings that stand alone, as docstrings do, and what `if TYPE_CHECKING` hides."""
    for node in nodes:
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _effective(node.orelse)
        elif not (isinstance(node, ast.Expr) and _is_string(node.value)):
            yield node


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _is_string(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and isinstance(expression.value, str)


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[_Import]:
    """Yield the dotted names an import may mean: in `from a import b`, `b` can be a submodule."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield _Import(0, tuple(alias.name.split(".")))
    else:
        base = tuple(node.module.split(".")) if node.module else ()
        for alias in node.names:
            yield _Import(node.level, (*base, alias.name))
