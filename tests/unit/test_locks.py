import os
import time

import pytest

from ganlm.files import ABANDONED_SECONDS
from ganlm.locks import LockedError, only_writer

HOLD_THE_LOCK = """
import sys, time
from pathlib import Path
from ganlm.locks import only_writer
with only_writer(Path(sys.argv[1]), wait_seconds=0):
    print("in", flush=True)
    time.sleep(60)
"""
WAIT_FOR_THE_LOCK = HOLD_THE_LOCK.replace("wait_seconds=0", "wait_seconds=30").replace(
    "with only_writer", 'print("waiting", flush=True)\nwith only_writer'
)


def test_only_one_process_may_write(tmp_path, child):
    lock = tmp_path / "models/lstm/resume.lock"
    first = child(HOLD_THE_LOCK, lock)
    assert first.stdout.readline() == "in\n"

    second = child(HOLD_THE_LOCK, lock)
    assert second.stdout.readline() == ""
    assert second.wait() == 1
    sentence = f"another process is at work and holds {lock}: wait for it or end it"
    assert second.stderr.read().endswith(f"LockedError: {sentence}\n")
    with pytest.raises(LockedError, match="another process is at work"), only_writer(lock, 0.1):
        pytest.fail("two at once")

    first.kill()
    first.wait()
    third = child(HOLD_THE_LOCK, lock)
    assert third.stdout.readline() == "in\n"


def test_a_process_that_is_about_to_end_is_waited_for(tmp_path, child):
    first = child(HOLD_THE_LOCK, tmp_path / "lock")
    assert first.stdout.readline() == "in\n"
    second = child(WAIT_FOR_THE_LOCK, tmp_path / "lock")
    assert second.stdout.readline() == "waiting\n"
    time.sleep(0.5)
    assert second.poll() is None
    first.kill()
    first.wait()
    assert second.stdout.readline() == "in\n"


def test_the_stage_is_free_after_success_and_after_failure(tmp_path):
    lock = tmp_path / "lock"
    with only_writer(lock, 0):
        pass
    with pytest.raises(KeyError), only_writer(lock, 0):
        raise KeyError
    with only_writer(lock, 0):
        pass


def test_other_locks_of_a_folder_are_free(tmp_path):
    with only_writer(tmp_path / "a.lock", 0), only_writer(tmp_path / "b.lock", 0):
        pass


def test_half_files_of_others_are_left_alone(tmp_path):
    """Whatever their age: a training owns its folder, a shard the files with its name."""
    mine, others = tmp_path / ".m.1-of-2.csv.7.part", tmp_path / ".m.2-of-2.csv.8.part"
    for path in (mine, others):
        path.touch()
        os.utime(path, (0, time.time() - 2 * ABANDONED_SECONDS))
    with only_writer(tmp_path / "m.1-of-2.lock", 0, (".m.1-of-2.*.part",)):
        assert not mine.exists()
        assert others.exists()
    with only_writer(tmp_path / "resume.lock", 0):
        assert not others.exists()
