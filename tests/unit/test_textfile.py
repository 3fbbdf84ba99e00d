import bz2
import gzip
import io
import lzma
import os
import random
import sys
import zipfile
from pathlib import Path

import pytest

from ganlm.textfile import TextFileError, read_chunks

TEXT = b"anarchism originated as a term of abuse " * 5


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


PACK = {
    "txt": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zip": lambda text: zipped(("text8", text)),
}
PACKED = [kind for kind in PACK if kind != "txt"]


def save(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def unpacked(path, **options):
    return b"".join(read_chunks(path, **options))


def complaint(path, **options):
    """The one sentence with which the file is refused."""
    with pytest.raises(TextFileError) as caught:
        unpacked(path, **options)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("text", [b"", b"x", TEXT, random.Random(1).randbytes(300_000)])
def test_every_format_gives_the_text_back(tmp_path, kind, text):
    assert unpacked(save(tmp_path, f"text.{kind}", PACK[kind](text))) == text


@pytest.mark.parametrize("kind", PACK)
def test_chunks_are_full_except_the_last_and_limit_cuts_exactly(tmp_path, kind):
    text = random.Random(2).randbytes(100_000)
    path = save(tmp_path, f"text.{kind}", PACK[kind](text))
    assert [len(c) for c in read_chunks(path, chunk_bytes=30_000)] == [30_000] * 3 + [10_000]
    for limit in (0, 1, 30_000, 45_678, 100_000, 100_001):
        assert unpacked(path, limit=limit, chunk_bytes=30_000) == text[:limit]


@pytest.mark.parametrize("kind", PACKED)
def test_content_not_name_tells_the_format(tmp_path, kind):
    assert unpacked(save(tmp_path, "text8.part", PACK[kind](TEXT))) == TEXT
    assert unpacked(save(tmp_path, "text8.gz", PACK[kind](TEXT))) == TEXT


@pytest.mark.parametrize("start", [b"BZh9 is a name", b"PK is a name", b"7zXZ", b"\x1e\x8b"])
def test_text_that_resembles_a_magic_number_is_plain(tmp_path, start):
    assert unpacked(save(tmp_path, "text.txt", start)) == start


def test_several_gzip_members_are_one_text_as_for_zcat(tmp_path):
    both = gzip.compress(b"one ") + gzip.compress(b"two")
    assert unpacked(save(tmp_path, "text.gz", both)) == b"one two"


@pytest.mark.parametrize("kind", PACKED)
def test_every_truncation_is_noticed(tmp_path, kind):
    archive = PACK[kind](TEXT)
    for length in range(len(archive)):
        complaint(save(tmp_path, f"text.{kind}", archive[:length]))


@pytest.mark.parametrize("kind", PACKED)
def test_no_flipped_bit_changes_the_text_unnoticed(tmp_path, kind):
    archive = PACK[kind](TEXT)
    refused = 0
    for bit in range(8 * len(archive)):
        damaged = bytearray(archive)
        damaged[bit // 8] ^= 1 << bit % 8
        path = save(tmp_path, f"text.{kind}", damaged)
        try:
            assert unpacked(path) == TEXT
        except TextFileError:
            refused += 1
    assert refused > 4 * len(archive)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([], "holds 0 files"),
        ([("folder/", b"")], "holds 0 files"),
        ([("a", b"1"), ("b", b"2")], "holds 2 files"),
        ([("/etc/passwd", b"1")], "leaves its folder"),
        ([("../text8", b"1")], "leaves its folder"),
        ([("a/../../text8", b"1")], "leaves its folder"),
        ([("..\\text8", b"1")], "leaves its folder"),
        ([("C:text8", b"1")], "leaves its folder"),
    ],
)
def test_zip_must_hold_exactly_one_well_named_file(tmp_path, members, expected):
    assert expected in complaint(save(tmp_path, "text.zip", zipped(*members)))
    assert [p.name for p in tmp_path.iterdir()] == ["text.zip"]


def test_zip_may_hold_folders_beside_the_file(tmp_path):
    path = save(tmp_path, "text.zip", zipped(("corpus/", b""), ("corpus/a..b", TEXT)))
    assert unpacked(path) == TEXT


def test_zip_with_an_unreadable_name(tmp_path):
    archive = zipped(("tëxt", TEXT)).replace("ë".encode(), b"\xff\xff")
    assert "corrupt" in complaint(save(tmp_path, "text.zip", archive))


def test_encrypted_zip(tmp_path):
    archive = bytearray(zipped(("text8", TEXT)))
    archive[6] |= 1
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    assert "without a password" in complaint(save(tmp_path, "text.zip", archive))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_methods_of_unbounded_memory_are_refused(tmp_path, method):
    path = save(tmp_path, "text.zip", zipped(("text8", TEXT), method=method))
    assert "pack it with deflate" in complaint(path)


@pytest.mark.parametrize("kind", PACK)
def test_too_long_a_text_is_refused_at_the_border(tmp_path, kind):
    path = save(tmp_path, f"text.{kind}", PACK[kind](bytes(5_000_000)))
    assert len(unpacked(path, max_bytes=5_000_000)) == 5_000_000
    assert "4,999,999 bytes" in complaint(path, max_bytes=4_999_999)
    read = 0
    with pytest.raises(TextFileError):
        for chunk in read_chunks(path, chunk_bytes=1000, max_bytes=10_000):
            read += len(chunk)
    assert read == 10_000


def test_zip_that_lies_about_its_length_is_refused(tmp_path):
    archive = bytearray(zipped(("text8", bytes(5_000_000))))
    central = archive.index(b"PK\x01\x02")
    archive[22:26] = archive[central + 24 : central + 28] = (10).to_bytes(4, "little")
    assert "corrupt" in complaint(save(tmp_path, "text.zip", archive), max_bytes=1000)


def test_missing_file_folder_and_pipe(tmp_path):
    assert "No such file" in complaint(tmp_path / "absent.txt")
    assert "not a regular file" in complaint(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in complaint(tmp_path / "pipe")


@pytest.fixture
def forbidden(tmp_path):
    """A file nobody may read; root may read everything, so act as somebody else meanwhile."""
    path = save(tmp_path, "secret.txt", TEXT)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield path
    os.seteuid(user)


def test_forbidden_file(forbidden):
    assert "Permission denied" in complaint(forbidden)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_failing_disk():
    assert "Input/output error" in complaint(Path("/proc/self/mem"))


@pytest.mark.parametrize("options", [{"limit": -1}, {"chunk_bytes": 0}])
def test_senseless_arguments(tmp_path, options):
    with pytest.raises(ValueError, match="must be positive"):
        unpacked(save(tmp_path, "text.txt", TEXT), **options)
