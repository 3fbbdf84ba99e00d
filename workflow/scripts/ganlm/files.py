"""Whole files or none: what is written appears under its name only once it is complete."""

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

REMEDY = "delete it, and the same command makes it again"

# What writes in progress are called, by `complete` and by safetensors.
HALF_FILES = (".*.part", ".tmp*")
ABANDONED_SECONDS = 3600


@contextmanager
def complete(path: Path | str) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end, removed when anything goes wrong.

    It is on the disk before it gets its name: a host that reboots may lose what was only on its way there.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def spent(folder: Path) -> Iterator[Path]:
    """Abandoned half files below `folder`, and checkpoints and journals beside the result they led to.

    The latter outlive their stage: if Snakemake is killed before it takes note that a stage has finished, it
    runs that stage again, which then has nothing to do but to write its files.

    A half file is abandoned once it is an hour old: another run may be writing the younger ones, and a write
    takes seconds. Age alone tells on every host of a cluster and for stages without a lock.
    """
    for path in folder.rglob("resume*.safetensors"):
        if path.with_name("model.json").exists():
            yield path
    for path in folder.rglob("*.resume"):
        if path.with_suffix(".csv").exists():
            yield path
            yield from path.parent.glob(f"{escape(path.name)}.*.npy")
    for pattern in HALF_FILES:
        yield from filter(_abandoned, folder.rglob(pattern))


def _abandoned(path: Path) -> bool:
    """Whether nobody has written to a half file for long; one that has just got its name is none."""
    try:
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    except FileNotFoundError:
        return False


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


def read_json(path: Path | str, *needed: str) -> dict:
    """Read what `write_json` wrote, or say which file is damaged or lacks a key that is needed."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}): {REMEDY}") from None
    for key in needed:
        if not isinstance(data, dict) or key not in data:
            raise ValueError(f"{path} lacks {key!r}, so another version of the workflow wrote it: {REMEDY}")
    return data
