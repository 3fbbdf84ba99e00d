"""Finished work survives a crash: an append-only journal beside the result, deleted when a run is done."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from glob import escape
from pathlib import Path
from threading import Lock

import numpy as np

from ganlm.files import complete, write_text
from ganlm.logs import Progress
from ganlm.measurement import WHOLE, Row, Task


class Journal:
    """Rows of finished blocks of one evaluation, and arrays that are its intermediate results.

    The first line is the key: everything the rows depend on. A journal with another key is started over, and
    arrays have a digest of it in their names, so that none is taken for one of another key.
    A line that a crash cut short, or that holds anything else than rows, is ignored, and so is all after it.
    """

    def __init__(self, path: Path, key: object) -> None:
        self._path, self._lock = path, Lock()
        header = json.dumps(key, sort_keys=True)
        self._digest = hashlib.sha256(header.encode()).hexdigest()[:12]
        found, *lines = self._lines()
        if found != header:
            lines = []
            self._delete_arrays()
        self.rows = _distinct(row for rows in _whole(lines) for row in rows)
        self._write([header, *([json.dumps(self.rows)] if self.rows else [])])

    def run(self, measure_block: Callable[[int], list[Row]], task: Task, workers: int) -> list[Row]:
        """The rows of all blocks of a task: those found here, and the others, measured in parallel.

        A failure stops the blocks that have not begun; those that are being measured are finished, and each
        that is finished stays in the journal.
        """
        name = task.protocol.name
        finished = {row.block for row in self.rows if (row.protocol, row.view) == (name, WHOLE)}
        pending = [int(block) for block in task.blocks if block not in finished]
        progress = Progress(f"{task.model} {name}", len(task.blocks), "blocks", start=len(finished))

        def finish(block: int) -> None:
            self._add(measure_block(block))

        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(finish, block) for block in pending]
            try:
                for number, future in enumerate(as_completed(futures), start=len(finished) + 1):
                    future.result()
                    progress.update(number)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        rows = [row for row in self.rows if row.protocol == name]
        return sorted(rows, key=lambda row: row.block)

    def array(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The array of that name, memory-mapped from the file beside the journal; made if there is none."""
        path = self._path.with_name(f"{self._path.name}.{self._digest}.{name}.npy")
        if not path.exists():
            made = make()
            with complete(path) as temporary, temporary.open("wb") as file:
                np.save(file, made)
        return np.lib.format.open_memmap(path, mode="r")

    def _add(self, rows: list[Row]) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self.rows.extend(rows)
            file.write(json.dumps(rows) + "\n")

    def _delete_arrays(self) -> None:
        for path in self._path.parent.glob(f"{escape(self._path.name)}.*.npy"):
            path.unlink()

    def _write(self, lines: list[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._path, "".join(line + "\n" for line in lines))

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return [""]
        return self._path.read_text(encoding="utf-8", errors="replace").split("\n")


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """Each row once: a process that outlived its job may have added what its successor added too."""
    return list({row._replace(total=0, variance=0, drawn=0, never_hit=0): row for row in rows}.values())


def _whole(lines: list[str]) -> Iterator[list[Row]]:
    """The rows of each line, up to the first line that a crash cut short, or that somebody else wrote."""
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            return
        if not isinstance(found, list) or not all(map(_is_row, found)):
            return
        yield [Row(*row) for row in found]


def _is_row(found: object) -> bool:
    """Whether it has a row's columns: words where a row has words, numbers elsewhere."""
    kinds = Row.__annotations__.values()
    return (
        isinstance(found, list)
        and len(found) == len(kinds)
        and all(
            isinstance(value, str if kind is str else int | float)
            for value, kind in zip(found, kinds, strict=True)
        )
    )
