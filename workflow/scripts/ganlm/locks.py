"""One writer per stage: a process that outlived its job may still write what its successor is about to."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ganlm.files import HALF_FILES


class LockedError(ValueError):
    """Somebody else is writing what a stage is to write."""


@contextmanager
def only_writer(
    lock: Path, wait_seconds: float = 5.0, half_files: tuple[str, ...] = HALF_FILES
) -> Iterator[None]:
    """Keep a second process out of a stage; the lock file stays, since another may be waiting for it.

    Half-written files beside it that match `half_files` are a dead process's to whoever is let in.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+") as file:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LockedError(
                        f"another process is at work and holds {lock}: wait for it or end it"
                    ) from None
                time.sleep(0.2)
        for pattern in half_files:
            for abandoned in lock.parent.glob(pattern):
                abandoned.unlink(missing_ok=True)
        yield
