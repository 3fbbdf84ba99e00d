import hashlib
import io
import logging
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from httpserver import PIECE_BYTES, serving

from ganlm import download as download_module
from ganlm.download import DownloadError, Expected, Patience, Source, download, writable_bytes

TEXT = bytes(random.Random(8).choices(b"abcdefghijklmnopqrstuvwxyz ", k=1_000_000))
EXPECTED = Expected(len(TEXT), hashlib.md5(TEXT).hexdigest(), f"{zlib.crc32(TEXT):08x}")
IMPATIENT = Patience(stall_seconds=0.3, retries=2, first_pause_seconds=0.01)
HTML = b"\r\n <!DOCTYPE html><html><body>Please log in.</body></html>"


def zipped(text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text", text)
    return buffer.getvalue()


ARCHIVE = zipped(TEXT)
HALF = len(ARCHIVE) // 2


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running


@pytest.fixture
def destination(tmp_path):
    return tmp_path / "made" / "here" / "text8"


def known(url):
    return Source(url, len(ARCHIVE), hashlib.sha256(ARCHIVE).hexdigest())


def left_behind(destination):
    return sorted(path.name for path in destination.parent.iterdir())


def assert_delivered(destination):
    assert destination.read_bytes() == TEXT
    assert left_behind(destination) == ["text8"]


def failure(sources, destination, **options):
    with pytest.raises(DownloadError) as caught:
        download(sources, destination, EXPECTED, **{"patience": IMPATIENT, **options})
    return str(caught.value)


@pytest.mark.parametrize("source", [known, Source])
@pytest.mark.parametrize(
    "manner", [{}, {"announces_length": False}, {"chunked": True}, {"honours_range": False}]
)
def test_text_arrives_however_it_is_sent(server, destination, source, manner):
    source = source(server.add("/text8.zip", body=ARCHIVE, **manner))
    assert download([source], destination, EXPECTED) == source
    assert_delivered(destination)
    assert [exchange.sent for exchange in server.exchanges] == [len(ARCHIVE)]


def test_plain_text_and_redirect(server, destination):
    moved = server.add("/plain.txt", body=TEXT, content_type="text/plain")
    download([Source(server.add("/old", redirect=moved))], destination, EXPECTED)
    assert_delivered(destination)


@pytest.mark.parametrize("source", [known, Source])
@pytest.mark.parametrize("manner", [{}, {"chunked": True}])
def test_cut_connection_goes_on_where_it_stopped(server, destination, source, manner):
    url = server.add("/text8.zip", body=ARCHIVE, cuts=[HALF, 1000, 70_000], **manner)
    download([source(url)], destination, EXPECTED, IMPATIENT)
    assert_delivered(destination)
    starts = [0, HALF, HALF + 1000, HALF + 71_000]
    assert [e.range for e in server.exchanges] == [None, *(f"bytes={n}-" for n in starts[1:])]
    assert sum(exchange.sent for exchange in server.exchanges) == len(ARCHIVE)


def test_known_size_reveals_a_cut_that_no_header_does(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, announces_length=False, cuts=[HALF])
    download([known(url)], destination, EXPECTED, IMPATIENT)
    assert_delivered(destination)
    assert [exchange.sent for exchange in server.exchanges] == [HALF, len(ARCHIVE) - HALF]


def test_progress_renews_patience_but_standing_still_does_not(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, cuts=[0, 0, 5000, 5000, 5000, 5000, 0, 5000, 0, 0])
    message = failure([Source(url)], destination)
    assert f"connection lost after 25,000 of {len(ARCHIVE):,} bytes" in message
    assert len(server.exchanges) == 10
    (part,) = destination.parent.iterdir()
    assert part.read_bytes() == ARCHIVE[:25_000]


def test_server_that_ignores_range_and_always_cuts_is_given_up(server, destination):
    cuts = [HALF, HALF - 1] * 20
    url = server.add("/text8.zip", body=ARCHIVE, honours_range=False, cuts=cuts)
    failure([known(url)], destination)
    assert len(server.exchanges) == 1 + IMPATIENT.retries


def test_stalled_connection_times_out_and_goes_on(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, stalls=[HALF])
    started = time.monotonic()
    download([known(url)], destination, EXPECTED, IMPATIENT)
    assert IMPATIENT.stall_seconds < time.monotonic() - started < 10
    assert_delivered(destination)
    assert [exchange.sent for exchange in server.exchanges] == [HALF, len(ARCHIVE) - HALF]


def test_server_that_never_answers(destination):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/text8.zip"
        message = failure([Source(url)], destination, patience=replace(IMPATIENT, retries=0))
    assert f"{url}: timed out" in message
    assert left_behind(destination) == []


def test_ignored_range_starts_over(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, honours_range=False, cuts=[HALF])
    download([known(url)], destination, EXPECTED, IMPATIENT)
    assert_delivered(destination)
    assert [exchange.sent for exchange in server.exchanges] == [HALF, len(ARCHIVE)]


def test_wrong_range_starts_over(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, wrong_range=True, cuts=[HALF])
    download([known(url)], destination, EXPECTED, IMPATIENT)
    assert_delivered(destination)
    assert [e.range for e in server.exchanges] == [None, f"bytes={HALF}-", None]


def test_too_long_a_part_starts_over(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, cuts=[HALF])
    failure([known(url)], destination, patience=replace(IMPATIENT, retries=0))
    (part,) = destination.parent.iterdir()
    part.write_bytes(bytes(len(ARCHIVE) + 7))
    download([known(url)], destination, EXPECTED, IMPATIENT)
    assert_delivered(destination)
    assert [exchange.status for exchange in server.exchanges] == [200, 416, 200]


def test_complete_part_needs_no_server(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE, cuts=[HALF])
    failure([known(url)], destination, patience=replace(IMPATIENT, retries=0))
    (part,) = destination.parent.iterdir()
    part.write_bytes(ARCHIVE)
    download([known(url)], destination, EXPECTED)
    assert_delivered(destination)
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("source", [known, Source])
@pytest.mark.parametrize(
    ("body", "content_type"),
    [(HTML, "application/zip"), (b"Please log in.", "text/html; charset=utf-8")],
)
def test_html_page_is_recognised(server, destination, source, body, content_type):
    url = server.add("/text8.zip", body=body, content_type=content_type)
    assert f"{url}: sends an HTML page instead of the file" in failure([source(url)], destination)
    assert left_behind(destination) == []
    assert len(server.exchanges) == 1


def test_wrong_file_of_the_right_size(server, destination):
    wrong = ARCHIVE[:-1] + b"!"
    message = failure([known(server.add("/text8.zip", body=wrong))], destination)
    assert hashlib.sha256(wrong).hexdigest() in message
    assert hashlib.sha256(ARCHIVE).hexdigest() in message
    assert left_behind(destination) == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (zipped(TEXT[:-1] + b"!"), f"where {EXPECTED.md5} was expected"),
        (zipped(TEXT[:-1]), "is 999999 where 1000000 was expected"),
        (zipped(TEXT + b"!"), "more than the 1,000,000 bytes"),
        (zipped(bytes(50_000_000)), "more than the 1,000,000 bytes"),
        (ARCHIVE[:-100], "truncated or corrupt"),
        (b"", "is 0 where 1000000 was expected"),
        (bytes(2_000_000), "offers 2,000,000 bytes where 1,011,024 were expected"),
    ],
)
def test_wrong_text_from_a_source_without_checksum(server, destination, body, complaint):
    assert complaint in failure([Source(server.add("/text8.gz", body=body))], destination)
    assert left_behind(destination) == []


def test_wrong_crc_is_named(server, destination):
    url = server.add("/text8.zip", body=ARCHIVE)
    with pytest.raises(DownloadError, match=f"CRC-32.* {EXPECTED.crc32} where 00000000 was"):
        download([known(url)], destination, replace(EXPECTED, crc32="00000000"))
    assert left_behind(destination) == []


def test_endless_source_is_stopped(server, destination):
    url = server.add("/text8.zip", body=bytes(30_000_000), announces_length=False)
    assert "sends more than the 1,011,024 bytes" in failure([Source(url)], destination)
    assert left_behind(destination) == []
    assert server.exchanges[0].sent < 20_000_000


@pytest.mark.parametrize("body", [ARCHIVE + b"!", ARCHIVE[:-1]])
def test_announced_size_is_checked_before_the_transfer(server, destination, body):
    url = server.add("/text8.zip", body=body)
    assert f"{url}: offers {len(body):,} bytes" in failure([known(url)], destination)
    assert left_behind(destination) == []


def test_missing_file_is_not_asked_for_twice(server, destination):
    url = server.add("/text8.zip", statuses=[404] * 9)
    assert f"{url}: the server answers 404 Not Found" in failure([known(url)], destination)
    assert len(server.exchanges) == 1
    assert left_behind(destination) == []


def test_busy_server_is_asked_again_after_doubling_pauses(server, destination, caplog):
    url = server.add("/text8.zip", body=ARCHIVE, statuses=[503, 500, 429])
    patience = Patience(retries=3, first_pause_seconds=0.1, longest_pause_seconds=0.2)
    started = time.monotonic()
    download([known(url)], destination, EXPECTED, patience)
    assert 0.1 + 0.2 + 0.2 <= time.monotonic() - started < 5
    assert_delivered(destination)
    assert [exchange.status for exchange in server.exchanges] == [503, 500, 429, 200]
    pauses = [re.search(r"next try in (.*) s$", message)[1] for message in caplog.messages]
    assert pauses == ["0.1", "0.2", "0.2"]


def test_next_source_replaces_a_bad_one_and_its_remains(server, destination):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = Source(f"http://127.0.0.1:{closed.getsockname()[1]}/text8.zip")
    cut = Source(server.add("/cut.zip", body=ARCHIVE, cuts=[HALF, 0, 0, 0]))
    wrong = known(server.add("/wrong.zip", body=ARCHIVE[:-1] + b"!"))
    good = Source(server.add("/text8.zip", body=ARCHIVE))
    assert download([dead, cut, wrong, good], destination, EXPECTED, IMPATIENT) == good
    assert_delivered(destination)


def test_when_all_fail_each_source_has_its_line_and_the_way_out_is_named(server, destination):
    urls = [server.add("/a", statuses=[404]), server.add("/b", body=HTML), server.add("/c")]
    lines = failure([Source(url) for url in urls], destination).splitlines()
    assert len(lines) == 2 + len(urls)
    assert all(line.startswith(f"  {url}: ") for line, url in zip(lines[1:-1], urls, strict=True))
    assert "corpus.path" in lines[-1]


def test_earlier_text_survives_a_failure(server, destination):
    destination.parent.mkdir(parents=True)
    destination.write_bytes(b"earlier")
    failure([Source(server.add("/text8.zip", body=zipped(b"wrong")))], destination)
    assert destination.read_bytes() == b"earlier"
    assert left_behind(destination) == ["text8"]


def test_killed_process_resumes(server, destination, tmp_path):
    url = server.add("/text8.zip", body=ARCHIVE, seconds_per_piece=0.05)
    program = (
        "import sys; from pathlib import Path; from ganlm.download import *; "
        f"download([{known(url)!r}], Path(sys.argv[1]), {EXPECTED!r})"
    )
    library = Path(download_module.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", program, destination],
        env={**os.environ, "PYTHONPATH": str(library)},
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 30
    while not any(part.stat().st_size > 100_000 for part in destination.parent.glob("*.part")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not destination.exists()
    (part,) = destination.parent.iterdir()
    kept = part.stat().st_size
    assert 100_000 < kept < len(ARCHIVE)

    server.routes["/text8.zip"].seconds_per_piece = 0
    download([known(url)], destination, EXPECTED)
    assert_delivered(destination)
    assert server.exchanges[-1].range == f"bytes={kept}-"
    assert server.exchanges[-1].sent == len(ARCHIVE) - kept


def test_too_little_disk_is_noticed_before_any_request(server, destination):
    source = known(server.add("/text8.zip", body=ARCHIVE))
    needed = len(ARCHIVE) + len(TEXT)
    message = failure([source], destination, free_bytes=lambda _: needed - 1)
    assert f"{needed:,} bytes in {destination.parent}" in message
    assert f"{needed - 1:,} can be written" in message
    assert server.exchanges == []
    assert left_behind(destination) == []
    download([source], destination, EXPECTED, free_bytes=lambda _: needed)
    assert_delivered(destination)


def test_what_is_there_already_needs_no_more_disk(server, destination):
    source = known(server.add("/text8.zip", body=ARCHIVE, cuts=[HALF]))
    failure([source], destination, patience=replace(IMPATIENT, retries=0))
    needed = len(ARCHIVE) - HALF + len(TEXT)
    assert f"{needed:,} bytes" in failure([source], destination, free_bytes=lambda _: needed - 1)
    download([source], destination, EXPECTED, free_bytes=lambda _: needed)
    assert_delivered(destination)


def test_full_disk_midway_keeps_what_is_written(server, destination):
    source = known(server.add("/text8.zip", body=ARCHIVE))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, hard))
    try:
        assert "File too large" in failure([source], destination)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    download([source], destination, EXPECTED)
    assert_delivered(destination)
    assert server.exchanges[-1].range == f"bytes={HALF}-"


def test_read_only_folder_has_no_room(tmp_path):
    assert writable_bytes(tmp_path) > 0
    tmp_path.chmod(0o500)
    user = os.getuid()
    if user == 0:  # root may write everywhere, so ask as somebody else
        os.setreuid(65534, 0)
    try:
        assert writable_bytes(tmp_path) == 0
    finally:
        os.setreuid(user, user)


def test_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    url = server.add("/text8.zip", body=ARCHIVE)
    assert str(tmp_path / "file") in failure([Source(url)], tmp_path / "file" / "text8")


def test_progress_lines_tell_rate_and_time_left(server, destination, caplog):
    total = 50_000_000
    expected = Expected(total, "", "")
    url = server.add("/text", body=bytes(total), cuts=[2_000_000, 300_000])
    patience = Patience(retries=0, progress_seconds=0.1)
    with pytest.raises(DownloadError, match="lost after 2,000,000 of"):
        download([Source(url)], destination, expected, patience)
    server.routes["/text"].seconds_per_piece = 0.02
    caplog.clear()
    started = time.time()
    with (
        pytest.raises(DownloadError, match="lost after 2,300,000 of"),
        caplog.at_level(logging.INFO, "ganlm.download"),
    ):
        download([Source(url)], destination, expected, patience)
    records = [record for record in caplog.records if record.levelno == logging.INFO]
    assert len(records) >= 2
    for record in records:
        line = re.fullmatch(
            re.escape(url) + r": ([\d,]+) bytes, (\d+\.\d\d) MB/s, "
            r"(\d+)% of 50,000,000 bytes, (\d+):(\d\d):(\d\d) left",
            record.getMessage(),
        )
        done, rate = int(line[1].replace(",", "")), float(line[2]) * 1e6
        slowest = (done - 2_000_000) / (record.created - started)
        assert 0.98 * slowest - 5000 < rate < 3 * PIECE_BYTES / 0.02
        assert int(line[3]) == round(100 * done / total)
        left = 3600 * int(line[4]) + 60 * int(line[5]) + int(line[6])
        assert left == pytest.approx((total - done) / rate, rel=0.02, abs=1)


def test_source_must_be_an_address():
    with pytest.raises(ValueError, match="must begin with http"):
        Source("file:///etc/passwd")
