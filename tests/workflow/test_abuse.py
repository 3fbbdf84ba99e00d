"""Full disks, closed folders, second runs, sudden deaths: one sentence each, and nothing finished is lost."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from clone import BIN, Clone

NAME, CONFIG = "abuse", "config/abuse.yaml"
NGRAM = f"results/{NAME}/models/5-gram/model.safetensors"
LSTM = f"results/{NAME}/models/lstm/model.safetensors"
FULL = "the disk is full ([Errno 28] No space left on device): make room and give the same command again"
KILLED = (
    "The system ended a stage (SIGKILL), mostly for want of memory: run fewer stages at once (--cores 1) or "
    "give it more memory; the same command goes on."
)
MOUNT_SECONDS = 30
EXPERIMENT = {
    "corpus": {"source": "bundled", "characters": 100_000},
    "models": {
        "5-gram": {"kind": "ngram", "order": 5},
        "lstm": {
            "kind": "lstm",
            "embedding": 8,
            "hidden": 16,
            "training": {"epochs": 3, "updates": 20, "validation_tokens": 1000, "validation_window": 100},
        },
    },
    "evaluation": {"windows": [100]},
}


@pytest.fixture
def abused(clone: Clone) -> Clone:
    clone.write_config(NAME, **EXPERIMENT)
    return clone


@pytest.fixture
def disk(abused: Clone) -> Iterator[Callable[[str], None]]:
    """Put the results on a disk of their own; call it with mount options to change it."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    folder = abused.path / "results"
    folder.mkdir()
    tmpfs = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    mounted = subprocess.run(tmpfs, check=False, timeout=MOUNT_SECONDS)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a small disk")
    yield lambda options: subprocess.run(
        ["mount", "-o", f"remount,{options}", folder], check=True, timeout=MOUNT_SECONDS
    )
    subprocess.run(["umount", folder], check=True, timeout=MOUNT_SECONDS)


@pytest.fixture
def start(abused: Clone) -> Iterator[Callable[[str], subprocess.Popen]]:
    """Start a run in a process group of its own; all of it is gone when the test is."""
    started = []

    def popen(target: str) -> subprocess.Popen:
        process = subprocess.Popen(
            ["snakemake", f"--configfile={CONFIG}", "--cores=1", target],
            cwd=abused.path,
            env=os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield popen
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stage_process(snakemake: subprocess.Popen, script: str) -> psutil.Process | None:
    """The process that runs a stage; children may end while one looks at them."""
    for child in psutil.Process(snakemake.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any(word.endswith(script) for word in child.cmdline()[1:2]):
                return child
    return None


def names(folder: Path) -> set[str]:
    """Of the files in a folder, which Snakemake removes when it is empty."""
    return {path.name for path in folder.glob("*")}


def half_files(clone: Clone) -> list[Path]:
    return [path for path in clone.results(NAME).rglob("*") if path.name.endswith((".part", ".npy.tmp"))]


def log(clone: Clone, name: str) -> str:
    path = clone.results(NAME) / f"logs/{name}.log"
    return path.read_text() if path.exists() else ""


def test_a_full_disk_is_named_and_room_is_all_it_takes(abused: Clone, disk: Callable[[str], None]):
    failed = abused.attempt(NGRAM, config=CONFIG)
    assert failed.returncode == 1
    assert FULL in failed.stdout
    assert names(abused.results(NAME) / "corpus") == set()

    disk("size=400k")
    failed = abused.attempt(NGRAM, config=CONFIG)
    assert failed.returncode == 1
    assert "the disk is full" in failed.stdout
    assert "train_ngram 5-gram started" in failed.stdout, "the corpus fits, the model does not"
    corpus = {path.name: path.stat().st_mtime_ns for path in (abused.results(NAME) / "corpus").iterdir()}
    assert set(corpus) == {"train.npy", "valid.npy", "test.npy", "corpus.json"}
    assert names((abused.path / NGRAM).parent) == set()

    disk("size=50m")
    output = abused.run(NGRAM, config=CONFIG)
    assert "split_corpus started" not in output
    assert {path.name for path in (abused.path / NGRAM).parent.iterdir()} == {
        "model.safetensors",
        "model.json",
    }
    assert all((abused.results(NAME) / "corpus" / name).stat().st_mtime_ns == corpus[name] for name in corpus)


def test_a_training_that_fills_the_disk_goes_on_from_its_checkpoint(
    abused: Clone, disk: Callable[[str], None]
):
    """First no checkpoint fits; then all do, one after the other, but not the weights beside the last one."""
    disk("size=50m")
    abused.run(f"results/{NAME}/corpus/corpus.json", config=CONFIG)
    corpus = {path.name: path.stat().st_mtime_ns for path in (abused.results(NAME) / "corpus").iterdir()}
    used = shutil.disk_usage(abused.path / "results").used // 1024
    for room, kept in ((16, set()), (72, {"resume.safetensors"})):
        disk(f"size={used + room}k")
        failed = abused.attempt(LSTM, config=CONFIG)
        assert failed.returncode == 1
        assert "pretrain_lm lstm started" in failed.stdout
        assert "the disk is full" in failed.stdout
        assert names((abused.path / LSTM).parent) - {"resume.lock"} == kept

    disk("size=50m")
    abused.run(LSTM, config=CONFIG)
    assert "resuming after epoch 3" in log(abused, "train/lstm"), "no epoch is repeated"
    assert all((abused.results(NAME) / "corpus" / name).stat().st_mtime_ns == corpus[name] for name in corpus)
    assert half_files(abused) == []


def test_a_read_only_folder_is_named(abused: Clone, disk: Callable[[str], None]):
    disk("ro")
    failed = abused.attempt(NGRAM, config=CONFIG)
    assert failed.returncode == 1
    assert "Read-only file system: 'results/abuse" in failed.stdout
    assert "Traceback" not in failed.stdout
    disk("rw,size=50m")
    abused.run(NGRAM, config=CONFIG)


def test_a_second_run_in_the_same_folder_is_kept_out(abused: Clone, start: Callable):
    """The first one, held in its tracks, is not disturbed."""
    first = start(LSTM)
    wait_until(lambda: stage_process(first, "split_corpus.py"))
    stage = stage_process(first, "split_corpus.py")
    stage.suspend()
    second = abused.attempt(LSTM, config=CONFIG)
    assert second.returncode == 1
    assert "Directory cannot be locked" in second.stdout
    stage.resume()
    output, _ = first.communicate(timeout=400)
    assert first.returncode == 0, output
    assert (abused.path / LSTM).exists()


def test_a_stage_that_the_system_kills_is_named_and_made_again(abused: Clone, start: Callable):
    """As the kernel does when memory runs out: no chance to say a word."""
    run = start(NGRAM)
    wait_until(lambda: stage_process(run, "train_ngram.py"))
    stage_process(run, "train_ngram.py").kill()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 1
    assert "Error in rule train_ngram" in output
    assert output.count(KILLED) == 1
    assert not (abused.path / NGRAM).exists()
    again = abused.run(NGRAM, config=CONFIG)
    assert "split_corpus started" not in again
    assert half_files(abused) == []


def test_training_that_ended_unnoticed_is_not_repeated(abused: Clone, start: Callable):
    """Snakemake, held before the stage ends and killed after, never learns of it and starts it again.

    It marks outputs as incomplete only after it has started their stage; hence the wait for the log.
    """
    run = start(LSTM)
    wait_until(lambda: "pretrain_lm lstm started" in log(abused, "train/lstm"))
    psutil.Process(run.pid).suspend()
    wait_until(lambda: "pretrain_lm lstm done" in log(abused, "train/lstm"))
    trained = (abused.path / LSTM).read_bytes()
    run.kill()
    run.wait()
    abused.run("--unlock", config=CONFIG)
    abused.run(LSTM, config=CONFIG)
    assert "resuming after epoch 3" in log(abused, "train/lstm")
    assert "pretrain_lm 1/3" not in log(abused, "train/lstm")
    assert (abused.path / LSTM).read_bytes() == trained
    assert not (abused.path / LSTM).with_name("resume.safetensors").exists(), "a run that is done leaves none"
