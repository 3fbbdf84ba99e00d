"""Whole files or none: what is written appears under its name only once it is complete."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def complete(path: Path | str) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end, removed when anything goes wrong."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write `text`, all of it or nothing."""
    with complete(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, data: object) -> None:
    """Write plain data with sorted keys, so that equal results are equal files."""
    plain = json.dumps(_finite(data), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, plain + "\n")


def _finite(data: object) -> object:
    """JSON has no infinity and no NaN: what is not a number becomes null."""
    match data:
        case dict():
            return {key: _finite(value) for key, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case float() if not math.isfinite(data):
            return None
    return data


def read_json(path: Path | str) -> dict:
    """Read what `write_json` wrote."""
    return json.loads(Path(path).read_text(encoding="utf-8"))
