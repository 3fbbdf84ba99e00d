"""Ways of training that last long enough to be interrupted, and what they leave behind."""

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil
from clone import Clone
from safetensors import safe_open

NAME = "kill"
CONFIG_FILE = f"config/{NAME}.yaml"


@dataclass(frozen=True, eq=False)
class Case:
    """A way of training: the model, its rule, how many steps it has, how many a checkpoint counts."""

    model: str
    rule: str
    steps: int
    counted: Callable[[dict], int]
    files: tuple[str, ...]
    block: dict

    def __str__(self) -> str:
        return self.model

    @property
    def folder(self) -> str:
        return f"results/{NAME}/models/{self.model}"

    @property
    def arguments(self) -> tuple[str, ...]:
        resources = f"--set-resources={self.rule}:checkpoint_seconds=0"
        return ("--cores=1", resources, f"{self.folder}/model.safetensors")


LSTM = Case(
    "lstm",
    "pretrain_lm",
    60,
    lambda progress: len(progress["history"]),
    ("model.safetensors", "last.safetensors", "history.csv", "model.json"),
    {
        "kind": "lstm",
        "embedding": 8,
        "hidden": 32,
        "dropout": 0.25,
        "training": {
            "epochs": 60,
            "updates": 20,
            "batch": 32,
            "validate_every": 7,
            "validation_tokens": 2000,
            "validation_window": 100,
        },
    },
)
RECURRENT_GAN = Case(
    "recurrent-gan",
    "train_recurrent_gan",
    60,
    lambda progress: progress["step"],
    ("model.safetensors", "last.safetensors", "kept.safetensors", "history.csv", "model.json"),
    {
        "kind": "recurrent_gan",
        "hidden": 32,
        "window": 7,
        "training": {
            "lengths": [1, 2, 5],
            "iterations": 20,
            "critic_updates": 4,
            "generator_updates": 8,
            "log_every": 3,
            "validation_tokens": 700,
            "validation_draws": 10,
        },
    },
)
# 20 rounds of the discriminator, then 8 epochs of 5 steps: kills come in both parts.
SEQGAN = Case(
    "seqgan-published",
    "adversarial_train",
    60,
    lambda progress: progress["step"],
    RECURRENT_GAN.files,
    {
        "kind": "seqgan",
        "start": "start",
        "arms": {
            "published": {
                "shuffle": False,
                "rollout_lag": 0.5,
                "sampling_dropout": True,
                "adam": "tensorflow",
            }
        },
        "training": {
            "epochs": 8,
            "keep": [2, 8],
            "length": 10,
            "batch": 16,
            "sequences": 32,
            "held_out": 16,
            "pretrain_rounds": 20,
            "rounds": 4,
            "passes": 1,
            "repeats": 2,
            "validation_tokens": 1000,
            "validation_window": 100,
        },
    },
)
START = LSTM.block | {"training": LSTM.block["training"] | {"epochs": 1}}
CONFIG = {
    "corpus": {"source": "bundled", "characters": 50_000},
    "models": {
        "lstm": LSTM.block,
        "start": START,
        "seqgan": SEQGAN.block,
        "recurrent-gan": RECURRENT_GAN.block,
    },
    "evaluation": {"windows": [7]},
}


def log(case: Case, clone: Clone) -> str:
    return (clone.results(NAME) / f"logs/train/{case.model}.log").read_text()


def outputs(case: Case, clone: Clone) -> dict[str, bytes]:
    folder = clone.path / case.folder
    assert {path.name for path in folder.iterdir()} == {*case.files, "resume.lock"}
    return {name: (folder / name).read_bytes() for name in case.files}


def steps_saved(case: Case, clone: Clone) -> int:
    """What the checkpoint says; it can be read at any time, because it is never half there."""
    path = clone.path / case.folder / "resume.safetensors"
    if not path.exists():
        return 0
    with safe_open(path, "numpy") as file:
        return case.counted(json.loads(file.metadata()["progress"]))


def wait_for_step(step: int, case: Case, clone: Clone, running: Callable[[], bool]) -> None:
    while steps_saved(case, clone) < step:
        assert running(), f"the run was over before step {step} was seen"
        time.sleep(0.002)


def training_process(case: Case, clone: Clone) -> psutil.Process:
    """The only process that has the stage's lock open."""
    lock = (clone.path / case.folder / "resume.lock").resolve()
    found = [process for process in psutil.process_iter() if str(lock) in _open_files(process)]
    assert len(found) == 1, found
    return found[0]


def _open_files(process: psutil.Process) -> set[str]:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return {file.path for file in process.open_files()}
    return set()


def resumed_after(case: Case, clone: Clone) -> int:
    found = re.search(r"resuming after \w+ (\d+)", log(case, clone))
    return int(found[1]) if found else 0
