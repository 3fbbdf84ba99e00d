"""One log format for all stages: `2026-01-31T12:00:00+0100 INFO message`.

Snakemake does not capture what a script prints, so each stage writes its own log file, the one
its rule names under `log:`, and `tail -f` on it shows how far the stage is.
"""

import errno
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

# NumPy, and libraries in other languages, put the reason into the message alone.
_DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "requested and 0 written")

logger = logging.getLogger(__name__)


@contextmanager
def stage_log(path: Path | str, stage: str) -> Iterator[None]:
    """Log a stage from start to end, with wall time and peak memory, to its file and to stderr.

    A failure leaves its traceback in the file and one sentence as the last line, then exits with
    status 1. Raised further, it would show the traceback twice: Snakemake prints failed logs.
    """
    start = time.monotonic()
    with _handlers(Path(path)):
        logger.info("%s started", stage)
        try:
            yield
        except Exception as error:
            logger.exception("%s failed after %s", stage, _usage(start))
            logger.error(_sentence(error))
            raise SystemExit(1) from error
        except KeyboardInterrupt:
            logger.error("%s interrupted after %s", stage, _usage(start))
            raise
        logger.info("%s done in %s", stage, _usage(start))


class Progress:
    """Log how far a long loop is, at most one line per interval of time.

    `evaluate 5-gram 1,200,000/3,704,099 tokens 32% 410,000 tokens/s eta 0:00:06 bpc 1.94`

    A loop that resumes passes what it found done as `start`, so that rate and eta stay true.
    """

    def __init__(
        self,
        what: str,
        total: int,
        unit: str = "tokens",
        every_seconds: float = 10.0,
        *,
        start: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total, self._unit, self._start = what, total, unit, start
        self._every_seconds, self._clock = every_seconds, clock
        self._begin = self._last_line = clock()

    def update(self, done: int, **metrics: float) -> None:
        """Report that `done` of the total are done; the last one is always logged."""
        now = self._clock()
        if done >= self._total or now - self._last_line >= self._every_seconds:
            self._last_line = now
            logger.info(self._line(done, now - self._begin, metrics))

    def _line(self, done: int, seconds: float, metrics: dict[str, float]) -> str:
        rate = (done - self._start) / seconds if seconds else 0.0
        eta = _hms(max(self._total - done, 0) / rate) if rate else "unknown"
        percent = 100 * done // self._total if self._total else 100
        values = (f" {name} {value:.4g}" for name, value in metrics.items())
        return (
            f"{self._what} {done:,}/{self._total:,} {self._unit} {percent}% "
            f"{_three_digits(rate)} {self._unit}/s eta {eta}{''.join(values)}"
        )


class _StageFile(WatchedFileHandler):
    """A log that is opened anew once removed, which Snakemake does before it starts a stage again.

    So a process that outlived its job, and keeps the new one out, can still be followed. A full or closed
    disk must not fill the screen too: what the log cannot hold is on stderr.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; opening the file, which logging does not expect to fail here, may fail."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


@contextmanager
def _handlers(path: Path) -> Iterator[None]:
    """Send every log record and warning of the process to the file and to stderr."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    file = _StageFile(path, encoding="utf-8", delay=True)
    echo = logging.StreamHandler(sys.stderr)
    echo.addFilter(lambda record: not record.exc_info)
    root = logging.getLogger()
    level = root.level
    for handler in (file, echo):
        handler.setFormatter(_FORMAT)
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.setLevel(level)
        for handler in (file, echo):
            root.removeHandler(handler)
        file.close()


def _sentence(error: Exception) -> str:
    """Give the message on one line; only a ValueError, raised for bad input, explains itself."""
    message = " ".join(str(error).split())
    kind = type(error).__name__
    if isinstance(error, MemoryError):
        return f"out of memory ({message or kind}): start fewer stages at once (--cores), or a smaller model"
    if any(full in message for full in _DISK_FULL):
        return f"the disk is full ({message}): make room and give the same command again"
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return (
            f"{error.filename or 'a file'} is closed to this user ({error.strerror}): check its permissions"
        )
    if not message:
        return kind
    return message if isinstance(error, ValueError) else f"{kind}: {message}"


def _usage(start: float) -> str:
    return f"{_hms(time.monotonic() - start)}, peak memory {_peak_memory_mb():.0f} MB"


def _peak_memory_mb() -> float:
    """Measure the largest size of this process or of one child, in 10^6 bytes as `mem_mb`.

    Linux counts the process that was forked, so under Snakemake the floor is Snakemake's own size.
    """
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in who) * bytes_per_unit / 1e6


def _hms(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _three_digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.12g}"
