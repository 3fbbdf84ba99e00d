"""Read a text that is plain, .gz, .xz, .bz2 or the one file in a .zip, never unpacking to disk."""

import bz2
import gzip
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_MAGIC = {
    "gz": re.compile(rb"\x1f\x8b"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "zip": re.compile(rb"PK(\x03\x04|\x05\x06)"),
}
_LONGEST_MAGIC = 10
_OPENERS = {"plain": Path.open, "gz": gzip.open, "xz": lzma.open, "bz2": bz2.open}

# ZipExtFile bounds its memory for these two only: other methods unpack whole blocks at once.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_ENCRYPTED = 0x1
_LARGEST_RATIO = 100

_DAMAGE = (
    EOFError,
    NotImplementedError,
    ValueError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)


class TextFileError(ValueError):
    """A text file that cannot be read; the message is one sentence for the user."""


def read_chunks(
    path: Path,
    limit: int | None = None,
    chunk_bytes: int = 1 << 22,
    max_bytes: int = 1 << 36,
    bomb_bytes: int = 1 << 28,
) -> Iterator[bytes]:
    """Yield the unpacked bytes of `path`: chunks of `chunk_bytes`, the last one shorter.

    `limit` ends the text early. A text longer than `max_bytes` is refused; what counts is what was
    really unpacked, because the header of a decompression bomb lies. The default, 64 GiB, lets
    every usual corpus pass (English Wikipedia is some 20 GB of text). No text packs to less than a
    hundredth, so what does, and is longer than `bomb_bytes`, is refused long before it fills a disk.
    Whatever is wrong with the file is a `TextFileError`.
    """
    if chunk_bytes < 1 or (limit is not None and limit < 0):
        raise ValueError(f"chunk_bytes={chunk_bytes} must be positive and limit={limit} not negative.")
    done = 0
    with _explained_errors(path), _opened(path) as stream:
        packed = path.stat().st_size
        while done != limit:
            chunk = stream.read(chunk_bytes if limit is None else min(chunk_bytes, limit - done))
            if not chunk:
                return
            done += len(chunk)
            if done > max_bytes:
                raise TextFileError(
                    f"{path} unpacks to more than the {max_bytes:,} bytes allowed: "
                    "check that it is the right file, or allow more (max_bytes)."
                )
            if done > max(bomb_bytes, _LARGEST_RATIO * packed):
                raise TextFileError(
                    f"{path} unpacks to more than {_LARGEST_RATIO} times its size, as no text does: "
                    "do not trust this file."
                )
            yield chunk


@contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except TextFileError:
        raise
    except (*_DAMAGE, OSError) as error:
        if getattr(error, "errno", None) is None:  # gzip and bz2 report bad data as a bare OSError
            reason = str(error) or type(error).__name__
            raise TextFileError(
                f"{path} is truncated or corrupt ({reason}): fetch or pack it again."
            ) from error
        raise TextFileError(
            f"{path} cannot be read ({error.strerror}): check the path and its permissions."
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    kind = _kind(path)
    if kind == "zip":
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(_only_member(path, archive.infolist())) as stream,
        ):
            yield stream
    else:
        with _OPENERS[kind](path, "rb") as stream:
            yield stream


def _kind(path: Path) -> str:
    """Tell the format by its first bytes: no text begins like that, whereas names are often wrong.

    Servers and browsers rename files, or unpack them and keep the name. The suffix only tells a
    damaged archive from a plain text.
    """
    if path.exists() and not path.is_file():
        raise TextFileError(f"{path} is not a regular file: name the text file itself.")
    with path.open("rb") as file:
        start = file.read(_LONGEST_MAGIC)
    for kind, magic in _MAGIC.items():
        if magic.match(start):
            return kind
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in _MAGIC:
        raise TextFileError(
            f"{path} does not begin like a {suffix} file: fetch it again, "
            "or drop the suffix if it is plain text."
        )
    return "plain"


def _only_member(path: Path, members: list[zipfile.ZipInfo]) -> zipfile.ZipInfo:
    files = [member for member in members if not member.is_dir()]
    if len(files) != 1:
        raise TextFileError(f"{path} holds {len(files)} files: pack exactly one text into the zip.")
    (member,) = files
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or re.match("[A-Za-z]:", member.filename):
        raise TextFileError(
            f"{path} holds the file {member.filename!r}, a path that leaves its folder: "
            "do not trust this zip."
        )
    if stat.S_ISLNK(member.external_attr >> 16):
        raise TextFileError(f"{path} holds a link instead of a text: do not trust this zip.")
    if member.flag_bits & _ZIP_ENCRYPTED:
        raise TextFileError(f"{path} is encrypted: pack the text without a password.")
    if member.compress_type not in _ZIP_METHODS:
        raise TextFileError(
            f"{path} uses zip compression method {member.compress_type}: pack it with deflate."
        )
    return member
