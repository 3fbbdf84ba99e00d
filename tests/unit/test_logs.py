"""Log files as a user finds them: after success, after a crash, and under Snakemake."""

import errno
import logging
import os
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ganlm import logs
from ganlm.logs import Progress, stage_log

SCRIPTS = Path(logs.__file__).parents[1]
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} (INFO|WARNING|ERROR) \S.*")
USAGE = r"\d+:\d\d:\d\d, peak memory [1-9]\d* MB"


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_success_logs_start_messages_and_usage_in_one_format(tmp_path, capsys):
    log = tmp_path / "logs" / "stage.log"
    with stage_log(log, "train 5-gram"):
        logging.getLogger("ganlm.anything").info("27 symbols, 90 % of them letters")
        warnings.warn("beware", stacklevel=1)
    lines = log.read_text().splitlines()
    assert lines[0].endswith(" INFO train 5-gram started")
    assert lines[1].endswith(" INFO 27 symbols, 90 % of them letters")
    assert " WARNING " in lines[2]
    assert "beware" in lines[2]
    assert re.search(rf" INFO train 5-gram done in {USAGE}$", lines[-1])
    assert all(LINE.fullmatch(lines[i]) for i in (0, 1, 2, -1))
    assert capsys.readouterr().err == log.read_text()


def test_lines_can_be_followed_while_the_stage_runs(tmp_path):
    with stage_log(tmp_path / "stage.log", "train"):
        logging.info("half way")
        assert (tmp_path / "stage.log").read_text().endswith("half way\n")


def test_the_loggers_of_the_process_are_left_as_found(tmp_path):
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with stage_log(tmp_path / "first.log", "first"):
        pass
    with pytest.raises(SystemExit), stage_log(tmp_path / "second.log", "second"):
        raise ValueError("no")
    assert (root.level, list(root.handlers)) == before
    assert "second" not in (tmp_path / "first.log").read_text()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("corpus.txt is empty; give a longer text"), "corpus.txt is empty; give a longer text"),
        (UnicodeError("bad\n  byte"), "bad byte"),
        (KeyError("hidden"), "KeyError: 'hidden'"),
        (RuntimeError("shapes differ: 100 %s"), "RuntimeError: shapes differ: 100 %s"),
        (AssertionError(), "AssertionError"),
        (ValueError(), "ValueError"),
        (
            MemoryError(),
            "out of memory (MemoryError): start fewer stages at once (--cores), or a smaller model",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "a.npy"),
            "the disk is full ([Errno 28] No space left on device: 'a.npy'): make room and give the same "
            "command again",
        ),
        (
            RuntimeError("Error while serializing: No space left on device (os error 28)"),
            "the disk is full (Error while serializing: No space left on device (os error 28)): make room "
            "and give the same command again",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "text"),
            "text is closed to this user (Permission denied): check its permissions",
        ),
    ],
)
def test_a_failure_ends_with_one_sentence(tmp_path, capsys, error, sentence):
    log = tmp_path / "stage.log"
    with pytest.raises(SystemExit) as exit_, stage_log(log, "train"):
        raise error
    assert exit_.value.code == 1
    assert exit_.value.__cause__ is error
    assert "Traceback (most recent call last):" in log.read_text()
    last = log.read_text().splitlines()[-1]
    assert last.endswith(f" ERROR {sentence}")
    assert LINE.fullmatch(last)
    assert capsys.readouterr().err.splitlines()[1:] == [last]


def test_a_log_that_was_removed_goes_on(tmp_path):
    """Snakemake removes a log before it starts a stage, also one that an older process still writes to."""
    log = tmp_path / "stage.log"
    with stage_log(log, "train"):
        log.unlink()
        logging.info("still here")
        with log.open("a") as second:
            second.write("refused\n")
        logging.info("and here")
    lines = [line.partition(" INFO ")[2] for line in log.read_text().splitlines()]
    assert lines[:3] == ["still here", "", "and here"]


def test_an_interrupted_stage_says_so(tmp_path):
    with pytest.raises(KeyboardInterrupt), stage_log(tmp_path / "stage.log", "train"):
        raise KeyboardInterrupt
    assert re.search(rf" ERROR train interrupted after {USAGE}\n$", (tmp_path / "stage.log").read_text())


STAGE = """
from ganlm.logs import stage_log

def deep():
    raise ValueError("line 3: 'ß' is not in the alphabet; lower-case the text first")

def main(log):
    with stage_log(log, "split_corpus demo"):
        deep()
"""


def check_crash_log(text: str) -> None:
    lines = text.splitlines()
    assert lines[0].endswith(" INFO split_corpus demo started")
    assert re.search(rf" ERROR split_corpus demo failed after {USAGE}$", lines[1])
    assert "Traceback (most recent call last):" in lines
    assert any(line.endswith("in deep") for line in lines)
    assert lines[-1].endswith(" ERROR line 3: 'ß' is not in the alphabet; lower-case the text first")


def test_a_crashing_process_leaves_its_traceback_in_the_log(tmp_path):
    (tmp_path / "stage.py").write_text(STAGE + 'main("stage.log")')
    process = run(sys.executable, "stage.py", cwd=tmp_path)
    check_crash_log((tmp_path / "stage.log").read_text())
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert process.stderr.splitlines()[-1] == (tmp_path / "stage.log").read_text().splitlines()[-1]


def test_a_crashing_script_under_snakemake_explains_itself(tmp_path):
    (tmp_path / "stage.py").write_text(STAGE + "main(snakemake.log[0])")
    (tmp_path / "Snakefile").write_text(
        'rule all:\n    output: "out"\n    log: "logs/stage.log"\n    script: "stage.py"\n'
    )
    snakemake = (sys.executable, "-m", "snakemake", "--cores", "1", "--show-failed-logs")
    process = run(*snakemake, cwd=tmp_path)
    assert process.returncode != 0
    check_crash_log((tmp_path / "logs" / "stage.log").read_text())
    assert process.stderr.count("Traceback") == 1


def test_peak_memory_covers_this_process_and_its_children(tmp_path):
    allocate = "x = bytearray(300_000_000)"
    own = f"from ganlm.logs import stage_log\nwith stage_log('own.log', 's'):\n    {allocate}"
    child = own.replace("own", "child").replace(
        allocate, f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{allocate}'])"
    )
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # across a fork, on Linux
    for name, program in {"own": own, "child": child}.items():
        assert run(sys.executable, "-c", program, cwd=tmp_path).returncode == 0
        megabytes = re.search(r"memory (\d+) MB", (tmp_path / f"{name}.log").read_text())
        assert 300 <= int(megabytes[1]) < max(400, inherited + 1)


class Clock:
    """A clock that stands still until it is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def progress_lines(caplog, steps, **options) -> list[str]:
    """Messages logged by updates `(seconds since start, done, metrics)`."""
    clock = Clock()
    with caplog.at_level(logging.INFO):
        progress = Progress(clock=clock, **options)
        for seconds, done, metrics in steps:
            clock.now = Clock.now + seconds
            progress.update(done, **metrics)
    return caplog.messages


def test_progress_line_holds_share_rate_eta_and_metrics(caplog):
    steps = [(3.0, 1_200_000, {"bpc": 1.94, "loss": 1.344703})]
    assert progress_lines(caplog, steps, what="evaluate 5-gram", total=3_704_099, every_seconds=3.0) == [
        "evaluate 5-gram 1,200,000/3,704,099 tokens 32% 400,000 tokens/s eta 0:00:06 bpc 1.94 loss 1.345"
    ]


def test_progress_logs_once_per_interval_and_always_the_last(caplog):
    steps = [(second, second, {}) for second in range(1, 26)]
    assert progress_lines(caplog, steps, what="train", total=25, unit="steps") == [
        "train 10/25 steps 40% 1 steps/s eta 0:00:15",
        "train 20/25 steps 80% 1 steps/s eta 0:00:05",
        "train 25/25 steps 100% 1 steps/s eta 0:00:00",
    ]


@pytest.mark.parametrize(
    ("seconds", "done", "total", "expected"),
    [
        (1000, 3, 60_003, "train 3/60,003 steps 0% 0.003 steps/s eta 5555:33:20"),
        (10, 99_999, 100_000, "train 99,999/100,000 steps 99% 10,000 steps/s eta 0:00:00"),
        (1, 12_345_678, 12_345_678, "train 12,345,678/12,345,678 steps 100% 12,300,000 steps/s eta 0:00:00"),
        (20, 0, 5, "train 0/5 steps 0% 0 steps/s eta unknown"),
        (0, 5, 5, "train 5/5 steps 100% 0 steps/s eta unknown"),
        (1, 0, 0, "train 0/0 steps 100% 0 steps/s eta unknown"),
    ],
)
def test_progress_of_slow_fast_and_empty_work(caplog, seconds, done, total, expected):
    steps = [(seconds, done, {})]
    assert progress_lines(caplog, steps, what="train", total=total, unit="steps") == [expected]


def test_resumed_work_counts_only_what_this_run_did(caplog):
    steps = [(10.0, 600, {})]
    assert progress_lines(caplog, steps, what="train", total=1000, unit="steps", start=500) == [
        "train 600/1,000 steps 60% 10 steps/s eta 0:00:40"
    ]


def test_a_log_that_cannot_be_opened_does_not_hide_the_sentence(tmp_path, capsys):
    """A disk that was closed meanwhile: what is wrong is on the screen, and no traceback."""
    (tmp_path / "logs").write_text("a file where a folder should be")
    with pytest.raises(SystemExit), stage_log(tmp_path / "logs/stage.log", "train"):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "results/model")
    said = capsys.readouterr().err
    assert "results/model is closed to this user (Read-only file system): check its permissions" in said
    assert "Traceback" not in said
