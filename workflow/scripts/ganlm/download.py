"""Fetch a text from the first of several sources that delivers it unharmed.

A download goes on where it stopped, also in another process (range requests, RFC 9110 section 14),
and only a text of the expected length and checksums gets the final name. Those also make `If-Range`
needless: a file that changed between two requests is noticed, and dropped, in the end.
"""

import hashlib
import logging
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ganlm.textfile import TextFileError, read_chunks

log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 18
_REFUSALS = set(range(300, 500)) - {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}


@dataclass(frozen=True)
class Source:
    """An http(s) address of the text, packed or plain; size and sha256 (hex) of what is sent."""

    url: str
    size: int | None = None
    sha256: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"{self.url!r} is no source: it must begin with http:// or https://.")


@dataclass(frozen=True)
class Expected:
    """What the unpacked text must be: its length in bytes, MD5 and CRC-32 (lower-case hex)."""

    size: int
    md5: str
    crc32: str


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, how often to come back, and how often to report meanwhile.

    A connection, and then every next byte, may take `stall_seconds`. A source is given up after
    `retries` retries in a row that bring no new byte. The pause before them doubles, from
    `first_pause_seconds` to at most `longest_pause_seconds`.
    """

    stall_seconds: float = 30.0
    retries: int = 4
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 60.0
    progress_seconds: float = 10.0


DEFAULT_PATIENCE = Patience()

TEXT8 = Expected(size=100_000_000, md5="3bea1919949baf155f99411df5fada7e", crc32="7d6be66f")
TEXT8_SOURCES = (
    Source(
        "http://mattmahoney.net/dc/text8.zip",
        size=31_344_016,
        sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    ),
    Source("https://github.com/piskvorky/gensim-data/releases/download/text8/text8.gz"),
)


class DownloadError(RuntimeError):
    """The text could not be had; the message says why and what to do."""


class _UnusableError(Exception):
    """The source does not have the text, so nothing of it is kept."""


def writable_bytes(folder: Path) -> int:
    """Tell how many bytes may be written in `folder`: its free space, or 0 if it is read-only."""
    return shutil.disk_usage(folder).free if os.access(folder, os.W_OK) else 0


def download(
    sources: Sequence[Source],
    destination: Path,
    expected: Expected,
    patience: Patience = DEFAULT_PATIENCE,
    free_bytes: Callable[[Path], int] = writable_bytes,
) -> Source:
    """Write the unpacked text to `destination` and return the source that delivered it.

    The sources are tried in order. Part files lie beside `destination` until the text is complete.
    """
    failures = []
    for source in sources:
        part = _part(destination, source)
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            largest = _largest(source, expected)
            _require_space(source, part, largest + expected.size, free_bytes)
            _fetch(source, part, largest, patience)
            _verify_archive(part, source)
            _unpack(part, destination, expected)
        except (_UnusableError, OSError, HTTPException) as error:
            if isinstance(error, _UnusableError):
                part.unlink(missing_ok=True)
            failures.append(f"{source.url}: {error}")
            log.warning(failures[-1])
        else:
            for tried in sources:
                _part(destination, tried).unlink(missing_ok=True)
            log.info("%s: %s has the expected length and checksums", source.url, destination)
            return source
    raise DownloadError(
        "\n  ".join([f"{destination.name} could not be downloaded:", *failures])
        + "\nFetch it by hand; set `corpus.source: file` and `corpus.path` (plain, .gz, .xz, .bz2 or .zip)."
    )


def _part(destination: Path, source: Source) -> Path:
    key = hashlib.sha256(source.url.encode()).hexdigest()[:8]
    return destination.with_name(f"{destination.name}.{key}.part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _largest(source: Source, expected: Expected) -> int:
    """Bound what a source may send: packing adds less than 1 % and a header to any text."""
    return expected.size * 101 // 100 + 1024 if source.size is None else source.size


def _require_space(source: Source, part: Path, total: int, free_bytes: Callable[[Path], int]) -> None:
    needed, free = total - _size(part), free_bytes(part.parent)
    if free < needed:
        raise DownloadError(
            f"{source.url} needs up to {needed:,} bytes in {part.parent} but {free:,} can be "
            "written there: make room, or choose a folder on another disk."
        )


def _fetch(source: Source, part: Path, largest: int, patience: Patience) -> None:
    """Complete the part file, coming back as long as `patience` lasts."""
    failed, furthest = 0, _size(part)
    while _size(part) != source.size:
        try:
            _receive(source, part, largest, patience)
        except (OSError, HTTPException) as error:
            failed = 1 if _size(part) > furthest else failed + 1
            furthest = max(furthest, _size(part))
            if failed > patience.retries:
                raise
            pause = patience.first_pause_seconds * 2 ** (failed - 1)
            pause = min(pause, patience.longest_pause_seconds)
            log.warning("%s: %s; next try in %.1f s", source.url, error, pause)
            time.sleep(pause)
        else:
            return


def _receive(source: Source, part: Path, largest: int, patience: Patience) -> None:
    """Let one response append to the part file, or start it anew if the server sends all."""
    with _response(source.url, part, patience.stall_seconds) as response:
        start, total = _span(response, part)
        _refuse_html(response, start)
        if total is not None and (total > largest or source.size not in (None, total)):
            raise _UnusableError(f"offers {total:,} bytes where {largest:,} were expected")
        pieces = _pieces(response, (largest + 1 if total is None else total) - start)
        with part.open("ab" if start else "wb") as file:
            for piece in _logged(pieces, source.url, start, total, patience.progress_seconds):
                file.write(piece)
    size, wanted = _size(part), source.size if total is None else total
    if size > largest:
        raise _UnusableError(f"sends more than the {largest:,} bytes expected")
    if wanted is not None and size < wanted:
        raise ConnectionError(f"connection lost after {size:,} of {wanted:,} bytes")


def _response(url: str, part: Path, stall_seconds: float) -> HTTPResponse:
    """Ask for what is missing; all of it if the server rejects the range."""
    headers = {"User-Agent": "ganlm"}
    if size := _size(part):
        headers["Range"] = f"bytes={size}-"
    try:
        return urlopen(Request(url, headers=headers), timeout=stall_seconds)
    except HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and size:
            part.unlink(missing_ok=True)
            return _response(url, part, stall_seconds)
        failure = _UnusableError if error.code in _REFUSALS else ConnectionError
        raise failure(f"the server answers {error.code} {error.reason}") from error
    except URLError as error:
        raise ConnectionError(error.reason) from error


def _span(response: HTTPResponse, part: Path) -> tuple[int, int | None]:
    """Tell where in the file the response begins, and the length of the whole file if known."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None
    content_range = response.headers.get("Content-Range", "")
    span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", content_range)
    if not span or int(span[1]) != _size(part):
        part.unlink(missing_ok=True)
        raise ConnectionError(f"the server sent the wrong range ({content_range!r})")
    return int(span[1]), None if span[2] == "*" else int(span[2])


def _refuse_html(response: HTTPResponse, start: int) -> None:
    """Recognise the page of a portal or of a moved file: no archive begins with `<`."""
    beginning = b"" if start else response.peek().lstrip(b"\xef\xbb\xbf \t\r\n")
    if response.headers.get_content_type() == "text/html" or beginning.startswith(b"<"):
        raise _UnusableError("sends an HTML page instead of the file")


def _pieces(response: HTTPResponse, length: int) -> Iterator[bytes]:
    """Yield bytes as they come, at most `length`; `read1` keeps what came before a stall."""
    while length > 0 and (piece := response.read1(min(_PIECE_BYTES, length))):
        length -= len(piece)
        yield piece


def _logged(
    pieces: Iterator[bytes], name: str, start: int, total: int | None, seconds: float
) -> Iterator[bytes]:
    """Pass the pieces on and log a line of progress about every `seconds`."""
    began = reported = time.monotonic()
    done = start
    for piece in pieces:
        yield piece
        done += len(piece)
        now = time.monotonic()
        if now - reported > seconds:
            reported = now
            rate = (done - start) / (now - began)
            line = f"{name}: {done:,} bytes, {rate / 1e6:.2f} MB/s"
            if total is not None:
                left = timedelta(seconds=round((total - done) / rate))
                line += f", {done / total:.0%} of {total:,} bytes, {left} left"
            log.info(line)


def _verify_archive(part: Path, source: Source) -> None:
    _require_same("size", _size(part), source.size)
    with part.open("rb") as file:
        _require_same("sha256", hashlib.file_digest(file, "sha256").hexdigest(), source.sha256)


def _unpack(part: Path, destination: Path, expected: Expected) -> None:
    """Unpack under a temporary name; the text gets its name once it proved to be the right one."""
    unpacked = destination.with_name(f"{destination.name}.unpacked")
    md5, crc32, size = hashlib.md5(usedforsecurity=False), 0, 0
    try:
        with unpacked.open("wb") as file:
            for chunk in read_chunks(part, max_bytes=expected.size):
                file.write(chunk)
                md5.update(chunk)
                crc32 = zlib.crc32(chunk, crc32)
                size += len(chunk)
        _require_same("length of the unpacked text", size, expected.size)
        _require_same("MD5 of the unpacked text", md5.hexdigest(), expected.md5)
        _require_same("CRC-32 of the unpacked text", f"{crc32:08x}", expected.crc32)
        unpacked.replace(destination)
    except TextFileError as error:
        raise _UnusableError(str(error)) from error
    finally:
        unpacked.unlink(missing_ok=True)


def _require_same(what: str, found: int | str, expected: int | str | None) -> None:
    if expected not in (None, found):
        raise _UnusableError(f"{what} is {found} where {expected} was expected")
