"""Finished blocks survive a crash: an append-only journal beside the result, deleted with success."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock

from ganlm.logs import Progress
from ganlm.measurement import Row, Task


class Journal:
    """Rows of finished blocks of one evaluation.

    The first line is the key: everything the rows depend on. A journal with another key is started over.
    A line that a crash cut short is ignored, and so is all after it.
    """

    def __init__(self, path: Path, key: object) -> None:
        self._path, self._lock = path, Lock()
        header = json.dumps(key, sort_keys=True)
        self.rows = [Row(*row) for finished in self._read(header) for row in finished]
        self._write([header, *([json.dumps(self.rows)] if self.rows else [])])

    def run(self, measure_block: Callable[[int], list[Row]], task: Task, workers: int) -> list[Row]:
        """The rows of all blocks of a task: those found here, and the others, measured in parallel.

        A failure stops the blocks that have not begun; those that are being measured are finished, and each
        that is finished stays in the journal.
        """
        name = task.protocol.name
        finished = {row.block for row in self.rows if row.protocol == name}
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

    def _add(self, rows: list[Row]) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self.rows.extend(rows)
            file.write(json.dumps(rows) + "\n")

    def delete(self) -> None:
        """The result is written; nothing is left to resume."""
        self._path.unlink(missing_ok=True)

    def _write(self, lines: list[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".part")
        temporary.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        temporary.replace(self._path)

    def _read(self, header: str) -> Iterator[list]:
        if not self._path.exists():
            return
        found, *lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
        for line in lines if found == header else ():
            try:
                yield json.loads(line)
            except ValueError:
                return
