import json
import os
import threading
from collections import Counter

import numpy as np
import pytest
from measuring import task

from ganlm.files import ABANDONED_SECONDS, spent
from ganlm.measurement import Row
from ganlm.resume import Journal

WANTED = task(np.zeros(100, np.uint8), 10, block=10)
OTHER = task(np.zeros(100, np.uint8), 7, block=10)


class Meter:
    """Measures blocks, counts how often, and fails where told."""

    def __init__(self, wanted=WANTED, fails=()):
        self.wanted, self.fails, self.calls, self.lock = wanted, fails, Counter(), threading.Lock()

    def __call__(self, block):
        with self.lock:
            self.calls[block] += 1
        if block in self.fails:
            raise ValueError(f"block {block} cannot be measured")
        value = np.full(10, block / 3)
        return [
            *self.wanted.rows("sample", "harmonic", 5, [block], value, variance=0.1),
            *self.wanted.rows("sample", "brier", 5, [block], -value, unit="score", variance=np.nan),
        ]


def rows_of(meter):
    return [row for block in range(10) for row in type(meter)(meter.wanted)(block)]


def comparable(rows):
    """nan is not equal to itself."""
    return list(map(repr, rows))


@pytest.mark.parametrize("workers", [1, 2, 4, 20])
def test_rows_come_in_the_order_of_blocks(tmp_path, workers):
    meter = Meter()
    rows = Journal(tmp_path / "journal", "key").run(meter, WANTED, workers)
    assert comparable(rows) == comparable(rows_of(meter))
    assert set(meter.calls.values()) == {1}
    assert all(isinstance(row, Row) for row in rows)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("failing", [0, 4, 9])
def test_a_crash_keeps_what_is_finished_and_a_re_run_goes_on(tmp_path, workers, failing):
    path = tmp_path / "journal"
    first, second = Meter(fails=[failing]), Meter()
    with pytest.raises(ValueError, match=f"block {failing} cannot"):
        Journal(path, "key").run(first, WANTED, workers)
    finished = set(first.calls) - {failing}
    assert finished >= set(range(failing))
    rows = Journal(path, "key").run(second, WANTED, workers)
    assert set(second.calls) == set(range(10)) - finished
    assert comparable(rows) == comparable(rows_of(second))


def test_blocks_that_are_being_measured_when_another_fails_are_kept(tmp_path):
    failed, path = threading.Event(), tmp_path / "journal"

    class Slow(Meter):
        def __call__(self, block):
            if block == 0:
                assert failed.wait(timeout=10)
                return super().__call__(block)
            failed.set()
            raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        Journal(path, "key").run(Slow(), WANTED, 2)
    again = Meter()
    Journal(path, "key").run(again, WANTED, 1)
    assert set(again.calls) == set(range(1, 10))


def test_a_failure_stops_blocks_that_have_not_begun(tmp_path):
    begun = threading.Event()

    class Waiting(Meter):
        """Only once the main thread had its time to react does the next block end."""

        def __call__(self, block):
            if block == 1:
                begun.wait(timeout=0.5)
            return super().__call__(block)

    meter = Waiting(fails=[0])
    with pytest.raises(ValueError, match="block 0"):
        Journal(tmp_path / "journal", "key").run(meter, WANTED, 1)
    assert set(meter.calls) <= {0, 1}


def test_protocols_are_kept_apart(tmp_path):
    path = tmp_path / "journal"
    first = Journal(path, "key")
    done = first.run(Meter(), WANTED, 1)
    crashing = Meter(OTHER, fails=[3])
    with pytest.raises(ValueError, match="block 3"):
        first.run(crashing, OTHER, 1)
    kept = set(crashing.calls) - {3}
    assert kept >= {0, 1, 2}
    again, meters = Journal(path, "key"), (Meter(), Meter(OTHER))
    assert comparable(again.run(meters[0], WANTED, 1)) == comparable(done)
    rows = again.run(meters[1], OTHER, 1)
    assert {row.protocol for row in rows} == {"window-7"}
    assert not meters[0].calls
    assert set(meters[1].calls) == set(range(10)) - kept


@pytest.mark.parametrize("key", ["other", ["key"], {"key": 1}, None])
def test_another_key_starts_over(tmp_path, key):
    path = tmp_path / "journal"
    Journal(path, "key").run(Meter(), WANTED, 1)
    meter = Meter()
    Journal(path, key).run(meter, WANTED, 1)
    assert set(meter.calls) == set(range(10))
    back = Meter()
    Journal(path, "key").run(back, WANTED, 1)
    assert set(back.calls) == set(range(10))


def test_a_key_may_be_any_plain_data(tmp_path):
    """Tuples become lists on the way through the file; the key is still the same."""
    path, key = tmp_path / "journal", {"files": ("a", "b"), "numbers": [1, 2.5, None], "text": "ü\n"}
    Journal(path, key).run(Meter(), WANTED, 1)
    meter = Meter()
    Journal(path, key).run(meter, WANTED, 1)
    assert not meter.calls


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_line_that_was_cut_short_is_ignored(tmp_path, cut):
    path = tmp_path / "journal"
    Journal(path, "key").run(Meter(), WANTED, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    meter = Meter()
    rows = Journal(path, "key").run(meter, WANTED, 1)
    assert set(meter.calls) == ({9} if cut > 1 else set())
    assert comparable(rows) == comparable(rows_of(meter))
    third = Meter()
    Journal(path, "key").run(third, WANTED, 1)
    assert not third.calls


def test_two_processes_that_add_the_same_blocks_do_no_harm(tmp_path):
    """A process that outlived its job, and the one that was started in its place."""
    path = tmp_path / "journal"
    orphan, successor = Journal(path, "key"), Journal(path, "key")
    expected = successor.run(Meter(), WANTED, 1)
    orphan.run(Meter(), WANTED, 1)
    assert comparable(Journal(path, "key").run(Meter(), WANTED, 1)) == comparable(expected)


@pytest.mark.parametrize("content", [b"", b'"key"', b'"ke', b"\n", b"not json\n", b"\x00" * 20, b"\xff\n"])
def test_a_file_that_is_no_journal_is_started_over(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    meter = Meter()
    Journal(path, "key").run(meter, WANTED, 1)
    assert set(meter.calls) == set(range(10))


@pytest.mark.parametrize(
    "foreign",
    [
        "5",
        "null",
        '{"block": 1}',
        "[5]",
        "[[1, 2]]",
        '[["window-10"]]',
        json.dumps([[1] * 14]),
        '["window-10"]',
    ],
)
def test_a_line_that_holds_no_rows_ends_what_is_believed(tmp_path, foreign):
    path = tmp_path / "journal"
    Journal(path, "key").run(Meter(), WANTED, 1)
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *lines[:4], foreign, *lines[4:], ""]))
    meter = Meter()
    rows = Journal(path, "key").run(meter, WANTED, 1)
    assert set(meter.calls) == set(range(4, 10))
    assert comparable(rows) == comparable(rows_of(meter))


def test_numbers_survive_to_the_last_digit(tmp_path):
    path = tmp_path / "journal"
    rows = Journal(path, "key").run(Meter(), WANTED, 1)
    assert comparable(Journal(path, "key").run(Meter(), WANTED, 1)) == comparable(rows)


def test_a_journal_makes_its_folder_and_is_spent_once_its_result_is_there(tmp_path):
    path = tmp_path / "folder" / "a.1-of-2.resume"
    journal = Journal(path, "key")
    journal.run(Meter(), WANTED, 2)
    journal.array("x", lambda: np.ones(1))
    assert json.loads(path.read_text().splitlines()[0]) == "key"
    assert list(spent(tmp_path)) == []
    path.with_name("a.1-of-2.csv").touch()
    (array,) = tmp_path.glob("folder/*.x.npy")
    assert set(spent(tmp_path)) == {path, array}


def test_an_array_is_made_once(tmp_path):
    path, made = tmp_path / "journal", []

    def make():
        made.append(1)
        return np.arange(5)

    for _ in range(3):
        np.testing.assert_array_equal(Journal(path, "key").array("a", make), np.arange(5))
    assert len(made) == 1
    np.testing.assert_array_equal(Journal(path, "key").array("b", lambda: np.ones(2)), np.ones(2))
    np.testing.assert_array_equal(Journal(path, "other").array("a", lambda: np.zeros(3)), np.zeros(3))


def test_an_array_that_was_not_finished_is_made_again(tmp_path):
    journal = Journal(tmp_path / "journal", "key")

    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        journal.array("a", fail)
    half = tmp_path / ".journal.a.npy.1.part"
    half.write_bytes(b"cut sho")
    np.testing.assert_array_equal(journal.array("a", lambda: np.ones(2)), np.ones(2))
    assert list(spent(tmp_path)) == [], "somebody may be writing it"
    long_ago = half.stat().st_mtime - ABANDONED_SECONDS - 1
    os.utime(half, (long_ago, long_ago))
    assert list(spent(tmp_path)) == [half]


def test_an_array_of_an_orphan_with_another_key_is_not_taken_for_ours(tmp_path):
    """It began before a setting was changed, and ends after its successor has started the journal over."""
    path = tmp_path / "journal"
    orphan, successor = Journal(path, "old"), Journal(path, "new")
    orphan.array("x", lambda: np.zeros(3))
    np.testing.assert_array_equal(successor.array("x", lambda: np.ones(3)), np.ones(3))


def test_arrays_of_another_journal_are_left_alone(tmp_path):
    """Shard 1 of 10 must not delete what shard 1 of 1 keeps, nor an array what belongs to nobody."""
    first, second = (Journal(tmp_path / name, "key") for name in ("a.1-of-1.resume", "a.1-of-10.resume"))
    first.array("x", lambda: np.ones(1))
    second.array("x", lambda: np.ones(1))
    Journal(tmp_path / "a.1-of-1.resume", "other")
    (left,) = tmp_path.glob("*.npy")
    assert left.name.startswith("a.1-of-10.resume.")
