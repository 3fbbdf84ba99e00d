"""Training that is killed, by real kills, ends as if nobody had."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from clone import Clone
from interruption import (
    CONFIG_FILE,
    LSTM,
    RECURRENT_GAN,
    SEQGAN,
    Case,
    log,
    outputs,
    resumed_after,
    steps_saved,
    training_process,
    wait_for_step,
)


@pytest.fixture
def start() -> Iterator[Callable[[Case, Clone], subprocess.Popen]]:
    """Start the run; all of it is gone when the test is."""
    started = []

    def popen(case: Case, clone: Clone) -> subprocess.Popen:
        started.append(clone.start(*case.arguments, config=CONFIG_FILE))
        return started[-1]

    yield popen
    for process in started:
        kill_group(process)


def kill_group(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive(process: subprocess.Popen) -> Callable[[], bool]:
    return lambda: process.poll() is None


def kill_training_after(steps: int, case: Case, clone: Clone, start: Callable) -> None:
    """Kill the training process alone, so many steps on; Snakemake lives to report the failure."""
    target = steps_saved(case, clone) + steps
    snakemake = start(case, clone)
    wait_for_step(target, case, clone, alive(snakemake))
    training_process(case, clone).kill()
    assert snakemake.wait(timeout=60) == 1
    assert target <= steps_saved(case, clone) < case.steps, "the kill must hit the middle"
    assert not any((clone.path / case.folder / name).exists() for name in case.files)


CASES = [LSTM, SEQGAN, RECURRENT_GAN]
FAST = [(case, (2, 25)) for case in CASES]
SLOW = [
    pytest.param(case, kills, marks=pytest.mark.slow)
    for case in CASES
    for kills in [(1, 1, 1), (30,), (35, 5)]
]


@pytest.mark.parametrize(("case", "kills"), [*FAST, *SLOW], ids=str)
def test_the_same_command_goes_on(case, kills, training, expected, start):
    """After several kills, each in the run that resumed from the last one."""
    before = 0
    for steps in kills:
        kill_training_after(steps, case, training, start)
        assert resumed_after(case, training) == before
        before = steps_saved(case, training)
    training.run(*case.arguments, config=CONFIG_FILE)
    assert resumed_after(case, training) == before > 0
    assert outputs(case, training) == expected(case)


@pytest.mark.parametrize(
    "case", [LSTM, *(pytest.param(case, marks=pytest.mark.slow) for case in (SEQGAN, RECURRENT_GAN))], ids=str
)
def test_sigterm_loses_no_step(case, training, expected, start):
    """The step that the signal came in is finished and saved; Snakemake sees a failure, and may try again."""
    snakemake = start(case, training)
    wait_for_step(5, case, training, alive(snakemake))
    training_process(case, training).terminate()
    assert snakemake.wait(timeout=60) == 1
    before = steps_saved(case, training)
    assert 5 <= before < case.steps
    said = f"ended by SIGTERM; {case.folder}/resume.safetensors is saved, the same command goes on from there"
    assert log(case, training).endswith(f" WARNING {said}\n")

    training.run(*case.arguments, config=CONFIG_FILE)
    assert resumed_after(case, training) == before
    assert outputs(case, training) == expected(case)


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [LSTM, pytest.param(RECURRENT_GAN, marks=pytest.mark.slow)], ids=str)
def test_a_killed_run_goes_on_after_unlock(case, step, training, expected, start):
    snakemake = start(case, training)
    wait_for_step(step, case, training, alive(snakemake))
    kill_group(snakemake)
    before = steps_saved(case, training)
    assert step <= before < case.steps

    locked = training.attempt(*case.arguments, config=CONFIG_FILE)
    assert locked.returncode == 1
    assert "--unlock" in locked.stdout
    training.run("--unlock", config=CONFIG_FILE)
    training.run(*case.arguments, config=CONFIG_FILE)
    assert resumed_after(case, training) == before
    assert outputs(case, training) == expected(case)


@pytest.mark.parametrize("case", [LSTM, pytest.param(RECURRENT_GAN, marks=pytest.mark.slow)], ids=str)
def test_an_orphan_is_noticed_and_not_joined(case, training, start):
    """Only Snakemake is killed; its child, held here in its tracks, may wake up and write at any time."""
    snakemake = start(case, training)
    wait_for_step(3, case, training, alive(snakemake))
    orphan = training_process(case, training)
    orphan.suspend()
    snakemake.kill()
    snakemake.wait()
    assert orphan.is_running()
    before = steps_saved(case, training)

    training.run("--unlock", config=CONFIG_FILE)
    refused = training.attempt(*case.arguments, config=CONFIG_FILE)
    assert refused.returncode == 1
    said = f"another process is at work and holds {case.folder}/resume.lock: wait for it or end it"
    assert said in refused.stdout
    assert orphan.is_running()
    assert steps_saved(case, training) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_truncated_checkpoint_is_named(case, training, start):
    kill_training_after(2, case, training, start)
    path = training.path / case.folder / "resume.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    failed = training.attempt(*case.arguments, config=CONFIG_FILE)
    assert failed.returncode == 1
    assert f"{case.folder}/resume.safetensors is damaged" in failed.stdout
    assert "delete it to train from the start" in failed.stdout
