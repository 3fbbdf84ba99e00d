"""The stress test itself: it must notice what it is there to notice."""

import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import stress
from clone import Clone

LATER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def process():
    process = subprocess.Popen(LATER, start_new_session=True)
    yield process
    stress.kill_group(process)


def test_a_stage_that_was_gone_is_no_kill(process):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    child = psutil.Process(gone.pid)
    gone.wait()
    process.kill()
    assert not stress.kill("stage", process, {child: "train_ngram"}, random.Random(1))


def test_a_stage_that_ended_before_the_signal_is_no_kill():
    """A process that has ended but was not waited for takes a signal without complaint."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    child = psutil.Process(gone.pid)
    well = subprocess.Popen([sys.executable, "-c", ""])
    assert not stress.kill("stage", well, {child: "train_ngram"}, random.Random(1))
    gone.wait()


@pytest.mark.parametrize("victim", ["snakemake", "all"])
def test_a_run_that_was_over_is_no_kill(victim, process):
    over = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    over.wait()
    assert not stress.kill(victim, over, {}, random.Random(1))
    assert stress.kill(victim, process, {}, random.Random(1))


@pytest.mark.parametrize(
    ("printed", "accepted"),
    [
        ("ERROR another process is at work and holds results/x.lock: wait for it or end it", True),
        ("Error: Directory cannot be locked. Please make sure", True),
        ("ERROR TypeError: unsupported operand", False),
        ("", False),
    ],
)
def test_a_failure_is_accepted_only_if_something_was_in_the_way(printed, accepted, tmp_path):
    (tmp_path / stress.OUTPUT).write_text(printed)
    if accepted:
        stress.check_failure(Clone(tmp_path))
    else:
        with pytest.raises(SystemExit, match="a run failed, and nothing was in its way"):
            stress.check_failure(Clone(tmp_path))


@pytest.mark.parametrize("kills", [3, 5])
def test_fewer_kills_than_were_asked_for_is_a_failure(kills, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tally = stress.Tally()
    tally.victims.update({"all": 3})
    monkeypatch.setattr(stress, "stress", lambda *_: (tally, {"a": "1"}, {"a": "1"}))
    monkeypatch.setattr(
        sys, "argv", ["stress.py", f"--kills={kills}", "--seconds=60", f"--folder={tmp_path}"]
    )
    if kills == 3:
        stress.main()
    else:
        with pytest.raises(SystemExit, match="only 3 of 5 kills in 60 s"):
            stress.main()
