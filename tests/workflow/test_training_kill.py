"""Training that is killed, by real kills, ends as if nobody had."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from clone import BIN, Clone
from safetensors import safe_open

NAME = "kill"
EPOCHS = 60
MODEL = f"results/{NAME}/models/lstm"
OUTPUTS = ("model.safetensors", "last.safetensors", "history.csv", "model.json")
CONFIG = {
    "corpus": {"source": "bundled", "characters": 50_000},
    "models": {
        "lstm": {
            "kind": "lstm",
            "embedding": 8,
            "hidden": 32,
            "dropout": 0.25,
            "training": {
                "epochs": EPOCHS,
                "updates": 20,
                "batch": 32,
                "validate_every": 7,
                "validation_tokens": 2000,
                "validation_window": 100,
            },
        }
    },
}
ARGUMENTS = ("--cores=1", "--set-resources=pretrain_lm:checkpoint_seconds=0", f"{MODEL}/model.safetensors")
CONFIG_FILE = f"config/{NAME}.yaml"


@pytest.fixture(scope="module")
def prepared(repository: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with the corpus cut. Shared: do not change it."""
    clone = repository.copy(tmp_path_factory.mktemp("kill") / "prepared")
    clone.write_config(NAME, **CONFIG)
    clone.run("--cores=1", f"results/{NAME}/corpus/train.npy", config=CONFIG_FILE)
    return clone


@pytest.fixture(scope="module")
def expected(prepared: Clone, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The outputs of a run that nobody killed."""
    clone = prepared.copy(tmp_path_factory.mktemp("kill") / "whole")
    clone.run(*ARGUMENTS, config=CONFIG_FILE)
    assert "resuming" not in log(clone)
    return outputs(clone)


@pytest.fixture
def training(prepared: Clone, tmp_path: Path) -> Clone:
    return prepared.copy(tmp_path / "training")


@pytest.fixture
def start() -> Iterator[Callable[[Clone], subprocess.Popen]]:
    """Start the run in a process group of its own; all of it is gone when the test is."""
    groups = []

    def popen(clone: Clone) -> subprocess.Popen:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE_")}
        process = subprocess.Popen(
            ["snakemake", f"--configfile={CONFIG_FILE}", *ARGUMENTS],
            cwd=clone.path,
            env=inherited | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        groups.append(process)
        return process

    yield popen
    for process in groups:
        kill_group(process)


def kill_group(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def log(clone: Clone) -> str:
    return (clone.results(NAME) / "logs/train/lstm.log").read_text()


def outputs(clone: Clone) -> dict[str, bytes]:
    assert {path.name for path in (clone.path / MODEL).iterdir()} == {*OUTPUTS, "resume.lock"}
    return {name: (clone.path / MODEL / name).read_bytes() for name in OUTPUTS}


def epochs_saved(clone: Clone) -> int:
    """What the checkpoint says; it can be read at any time, because it is never half there."""
    path = clone.path / MODEL / "resume.safetensors"
    if not path.exists():
        return 0
    with safe_open(path, "numpy") as file:
        return len(json.loads(file.metadata()["progress"])["history"])


def wait_for_epoch(epoch: int, clone: Clone, process: subprocess.Popen) -> None:
    while epochs_saved(clone) < epoch:
        assert process.poll() is None, f"the run was over before epoch {epoch} was seen"
        time.sleep(0.002)


def training_process(snakemake: subprocess.Popen) -> psutil.Process:
    """The only descendant that has the stage's lock open."""
    found = [
        child
        for child in psutil.Process(snakemake.pid).children(recursive=True)
        if any(Path(file.path).name == "resume.lock" for file in child.open_files())
    ]
    assert len(found) == 1, found
    return found[0]


def resumed_after(clone: Clone) -> int:
    lines = [line for line in log(clone).splitlines() if "resuming after epoch" in line]
    return int(lines[0].split()[-1]) if lines else 0


def kill_training_after(epochs: int, clone: Clone, start: Callable) -> None:
    """Kill the training process alone, so many epochs on; Snakemake lives to report the failure."""
    target = epochs_saved(clone) + epochs
    snakemake = start(clone)
    wait_for_epoch(target, clone, snakemake)
    training_process(snakemake).kill()
    assert snakemake.wait(timeout=60) == 1
    assert target <= epochs_saved(clone) < EPOCHS, "the kill must hit the middle"
    assert not any((clone.path / MODEL / name).exists() for name in OUTPUTS)


SLOW = [pytest.param(kills, marks=pytest.mark.slow) for kills in [(1, 1, 1), (30,), (40, 5)]]


@pytest.mark.parametrize("kills", [(2, 18), *SLOW])
def test_the_same_command_goes_on(kills, training, expected, start):
    """After several kills, each in the run that resumed from the last one."""
    before = 0
    for epochs in kills:
        kill_training_after(epochs, training, start)
        assert resumed_after(training) == before
        before = epochs_saved(training)
    training.run(*ARGUMENTS, config=CONFIG_FILE)
    assert resumed_after(training) == before > 0
    assert outputs(training) == expected


@pytest.mark.parametrize("epoch", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_after_unlock(epoch, training, expected, start):
    snakemake = start(training)
    wait_for_epoch(epoch, training, snakemake)
    kill_group(snakemake)
    before = epochs_saved(training)
    assert epoch <= before < EPOCHS

    locked = training.attempt(*ARGUMENTS, config=CONFIG_FILE)
    assert locked.returncode == 1
    assert "--unlock" in locked.stdout
    training.run("--unlock", config=CONFIG_FILE)
    training.run(*ARGUMENTS, config=CONFIG_FILE)
    assert resumed_after(training) == before
    assert outputs(training) == expected


def test_an_orphan_is_noticed_and_not_joined(training, start):
    """Only Snakemake is killed; its child, held here in its tracks, may wake up and write at any time."""
    snakemake = start(training)
    wait_for_epoch(3, training, snakemake)
    orphan = training_process(snakemake)
    orphan.suspend()
    snakemake.kill()
    snakemake.wait()
    assert orphan.is_running()
    before = epochs_saved(training)

    training.run("--unlock", config=CONFIG_FILE)
    refused = training.attempt(*ARGUMENTS, config=CONFIG_FILE)
    assert refused.returncode == 1
    assert f"another process is training in {MODEL}: wait for it or end it" in refused.stdout
    assert orphan.is_running()
    assert epochs_saved(training) == before


@pytest.mark.slow
def test_a_truncated_checkpoint_is_named(training, start):
    kill_training_after(2, training, start)
    path = training.path / MODEL / "resume.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    failed = training.attempt(*ARGUMENTS, config=CONFIG_FILE)
    assert failed.returncode == 1
    assert f"{MODEL}/resume.safetensors is damaged" in failed.stdout
    assert "delete it to train from the start" in failed.stdout
