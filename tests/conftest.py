"""Copies of the repository: one that nobody changes, one with a finished run, and copies of both."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
import yaml
from browser import MISSING, Browser, is_installed, started
from clone import ROOT, Clone, succeed, without_network
from interruption import CONFIG, CONFIG_FILE, NAME, Case, log, outputs

STYLE = "workflow/report/report.css"


@pytest.fixture(autouse=True)
def denormals() -> Iterator[None]:
    """Stages that run in this process flush them to zero; other tests are about numbers that small."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone without results. Shared: do not change it."""
    return Clone.of_repository(tmp_path_factory.mktemp("clone") / "repository")


@pytest.fixture(scope="session")
def finished(repository: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone after a run of config/tiny.yaml. Shared: do not change it.

    With the threads of the test cluster: their number decides in which order floats are added.
    """
    clone = repository.copy(tmp_path_factory.mktemp("clone") / "finished")
    profile = yaml.safe_load((ROOT / "profiles/slurm-test/config.yaml").read_text())
    clone.run("--set-threads", *(f"{rule}={threads}" for rule, threads in profile["set-threads"].items()))
    return clone


@pytest.fixture(scope="session")
def report(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of that run, made without a network where the system allows to take it away."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    options = ("--configfile=config/tiny.yaml", f"--report={path}", f"--report-stylesheet={STYLE}")
    printed = succeed(*without_network(), "snakemake", *options, cwd=finished.path)
    assert not re.search(r"\((WARNING|ERROR|SEVERE)/\d\)", printed), f"a caption is faulty: {printed}"
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that tests share: each opens a page of its own, at a size of its own."""
    if not is_installed():
        pytest.skip(MISSING)
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def clone(repository: Clone, tmp_path: Path) -> Clone:
    """A clone without results, to be changed at will."""
    return repository.copy(tmp_path / "clone")


@pytest.fixture
def finished_clone(finished: Clone, tmp_path: Path) -> Clone:
    """A clone after a run of config/tiny.yaml, to be changed at will."""
    return finished.copy(tmp_path / "finished")


@pytest.fixture(scope="session")
def prepared(repository: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with the corpus cut and the language model that SeqGAN starts from. Do not change it."""
    clone = repository.copy(tmp_path_factory.mktemp("kill") / "prepared")
    clone.write_config(NAME, **CONFIG)
    clone.run("--cores=1", f"results/{NAME}/models/start/model.safetensors", config=CONFIG_FILE)
    return clone


@pytest.fixture(scope="session")
def expected(prepared: Clone, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], dict[str, bytes]]:
    """The outputs of a run that nobody killed."""

    @cache
    def whole(case: Case) -> dict[str, bytes]:
        clone = prepared.copy(tmp_path_factory.mktemp("kill") / "whole")
        clone.run(*case.arguments, config=CONFIG_FILE)
        assert "resuming" not in log(case, clone)
        return outputs(case, clone)

    return whole


@pytest.fixture
def training(prepared: Clone, tmp_path: Path) -> Clone:
    return prepared.copy(tmp_path / "training")
