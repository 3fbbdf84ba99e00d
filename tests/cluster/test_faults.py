"""Slurm interrupts training in every way it has; the weights are those of a run that nobody disturbed."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from clone import Clone
from interruption import (
    CONFIG_FILE,
    LSTM,
    NAME,
    log,
    outputs,
    resumed_after,
    steps_saved,
    training_process,
    wait_for_step,
)
from slurm import Cluster, Job, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1200)]

# For everything that polls: Slurm looks at time limits twice a minute, Snakemake at its jobs when it likes.
SECONDS = 600
STEP = 5


@pytest.fixture
def train(training: Clone, submit: Callable) -> Callable[..., subprocess.Popen]:
    """Start training through the queue, up to a step."""

    def start(*arguments: str, step: int = STEP) -> subprocess.Popen:
        snakemake = submit(training, *LSTM.arguments, *arguments, config=CONFIG_FILE)
        wait_for_step(step, LSTM, training, lambda: snakemake.poll() is None)
        return snakemake

    return start


def printed(clone: Clone) -> str:
    return (clone.path / "snakemake.out").read_text()


def finish(snakemake: subprocess.Popen, clone: Clone) -> None:
    assert snakemake.wait(timeout=SECONDS) == 0, printed(clone)


def trainings(cluster: Cluster, clone: Clone) -> list[Job]:
    return cluster.jobs(clone.path, LSTM.rule)


def states(jobs: list[Job]) -> list[str]:
    return [job.state for job in jobs]


def test_a_cancelled_training_is_submitted_again_and_resumes(train, training, cluster, expected):
    """On a cluster that knows GPUs by --gres alone."""
    gres = ("gres=gpu:1", "gpu=0", "checkpoint_seconds=0")
    snakemake = train("--set-resources", *(f"{LSTM.rule}:{each}" for each in gres))
    (job,) = trainings(cluster, training)
    assert {each for each in cluster.asked(job) if each.startswith("Tres")} == {"TresPerNode=gres:gpu:1"}
    cluster.command("scancel", job.id)
    finish(snakemake, training)
    assert states(trainings(cluster, training)) == ["CANCELLED", "COMPLETED"]
    assert f"SLURM-job '{job.id}' failed, SLURM status is: 'CANCELLED'" in printed(training)
    assert STEP <= resumed_after(LSTM, training) < LSTM.steps
    assert outputs(LSTM, training) == expected(LSTM)


def test_a_timed_out_training_is_submitted_again_and_resumes(train, training, cluster, expected):
    """Without a warning: the option of the profile is replaced by one that does nothing."""
    mute = f"{LSTM.rule}:slurm_extra='--nice=0'"
    snakemake = train("--set-resources", f"{LSTM.rule}:checkpoint_seconds=0", mute)
    training_process(LSTM, training).suspend()
    cluster.limit(trainings(cluster, training)[0], minutes=0)
    wait_until(lambda: states(trainings(cluster, training))[0] == "TIMEOUT", "the limit is enforced", SECONDS)
    finish(snakemake, training)
    assert states(trainings(cluster, training)) == ["TIMEOUT", "COMPLETED"]
    assert STEP <= resumed_after(LSTM, training) < LSTM.steps
    assert outputs(LSTM, training) == expected(LSTM)


def test_a_training_longer_than_the_limit_takes_several_jobs(train, training, cluster, expected):
    """Warned in time, each saves the step it is in. Asleep, training lasts as long as the queue allows."""
    snakemake = train()
    for number in (1, 2):
        training_process(LSTM, training).suspend()
        cluster.limit(trainings(cluster, training)[-1], minutes=2)
        before = steps_saved(LSTM, training)
        wait_until(
            lambda number=number: states(trainings(cluster, training))[number - 1] == "FAILED",
            "the job has ended before its limit",
            SECONDS,
        )
        assert "ended by SIGTERM" in log(LSTM, training)
        assert before <= steps_saved(LSTM, training) <= before + 1
        saved = steps_saved(LSTM, training)
        wait_for_step(saved + STEP, LSTM, training, lambda: snakemake.poll() is None)
        assert resumed_after(LSTM, training) == saved
    finish(snakemake, training)
    assert states(trainings(cluster, training)) == ["FAILED", "FAILED", "COMPLETED"]
    assert outputs(LSTM, training) == expected(LSTM)


def test_a_dead_node_is_survived_and_its_orphan_kept_apart(train, training, cluster, expected):
    """The process outlives its node's daemon; the job starts elsewhere and waits until the other is gone."""
    snakemake = train("--set-resources", f"{LSTM.rule}:gpu=0", f"{LSTM.rule}:checkpoint_seconds=0")
    orphan = training_process(LSTM, training)
    orphan.suspend()
    (job,) = trainings(cluster, training)
    cluster.kill_node(job.node)
    try:
        before = steps_saved(LSTM, training)
        wait_until(lambda: restarted(trainings(cluster, training)), "the job is on another node", SECONDS)
        wait_until(lambda: "started" in log(LSTM, training), "the second process has begun", SECONDS)
        assert orphan.is_running()
        assert "resuming" not in log(LSTM, training)
        assert steps_saved(LSTM, training) == before
    finally:
        cluster.start_node(job.node)
    wait_until(lambda: not orphan.is_running(), "the node has ended what was taken from it", SECONDS)
    finish(snakemake, training)
    assert resumed_after(LSTM, training) == before
    assert outputs(LSTM, training) == expected(LSTM)


def restarted(jobs: list[Job]) -> bool:
    return jobs[-1].state == "RUNNING" and (jobs[-1].restarts > 0 or len(jobs) > 1)


def test_an_interrupted_snakemake_cancels_its_jobs_and_goes_on_later(
    train, training, cluster, submit, expected
):
    snakemake = train()
    snakemake.send_signal(signal.SIGINT)
    assert snakemake.wait(timeout=SECONDS) == 1
    wait_until(lambda: states(trainings(cluster, training)) == ["CANCELLED"], "the job is cancelled")
    saved = steps_saved(LSTM, training)
    finish(submit(training, *LSTM.arguments, config=CONFIG_FILE), training)
    assert_gone_on(saved, training, cluster)
    assert outputs(LSTM, training) == expected(LSTM)


def test_a_killed_snakemake_goes_on_after_scancel_and_unlock(train, training, cluster, submit, expected):
    snakemake = train()
    snakemake.kill()
    snakemake.wait()
    (job,) = trainings(cluster, training)
    assert job.state == "RUNNING", "a job does not need the Snakemake that submitted it"
    run = re.search(r"SLURM run ID: (\S+)", printed(training))[1]
    cluster.command("scancel", f"--name={run}")
    wait_until(lambda: states(trainings(cluster, training)) == ["CANCELLED"], "the job is cancelled")
    saved = steps_saved(LSTM, training)
    training.run("--unlock", config=CONFIG_FILE)
    finish(submit(training, *LSTM.arguments, config=CONFIG_FILE), training)
    assert_gone_on(saved, training, cluster)
    assert outputs(LSTM, training) == expected(LSTM)


def assert_gone_on(saved: int, clone: Clone, cluster: Cluster) -> None:
    """The training and nothing else was submitted again; it was not begun again."""
    assert states(cluster.jobs(clone.path)) == ["CANCELLED", "COMPLETED"]
    assert STEP <= saved == resumed_after(LSTM, clone) < LSTM.steps


def test_a_failing_job_is_named_with_its_log_and_the_rest_goes_on(clone, submit, cluster):
    models = {
        "3-gram": {"kind": "ngram", "order": 3},
        "broken": {"kind": "command", "command": ["sh", "-c", "echo no generator here >&2; exit 3"]},
    }
    corpus = {"source": "bundled", "characters": 50_000}
    evaluation = {"windows": [7], "characters": 100, "block": 50, "draws": 50, "baseline": "3-gram"}
    config = clone.write_config(NAME, corpus=corpus, models=models, evaluation=evaluation)
    folder = f"results/{NAME}"
    targets = [f"{folder}/evaluate/{model}.json" for model in models]
    snakemake = submit(clone, "--retries=0", *targets, config=config)
    assert snakemake.wait(timeout=SECONDS) == 1
    error = printed(clone).split("Error in rule approx_evaluate:")[1]
    assert (
        re.search(r"^    log: (.*?),", error, re.MULTILINE)[1] == f"{folder}/logs/evaluate/broken.1-of-1.log"
    )
    assert "ended before it answered; exit status 3; it said: no generator here" in error
    assert Path(clone.path, targets[0]).exists()
    assert not Path(clone.path, targets[1]).exists()
    assert sorted(states(cluster.jobs(clone.path, "approx_evaluate"))) == ["COMPLETED", "FAILED"]
