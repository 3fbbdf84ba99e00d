"""Copies of the repository: one that nobody changes, one with a finished run, and copies of both."""

from pathlib import Path

import pytest
from clone import Clone


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone without results. Shared: do not change it."""
    return Clone.of_repository(tmp_path_factory.mktemp("clone") / "repository")


@pytest.fixture(scope="session")
def finished(repository: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone after a run of config/tiny.yaml. Shared: do not change it."""
    clone = repository.copy(tmp_path_factory.mktemp("clone") / "finished")
    clone.run()
    return clone


@pytest.fixture
def clone(repository: Clone, tmp_path: Path) -> Clone:
    """A clone without results, to be changed at will."""
    return repository.copy(tmp_path / "clone")


@pytest.fixture
def finished_clone(finished: Clone, tmp_path: Path) -> Clone:
    """A clone after a run of config/tiny.yaml, to be changed at will."""
    return finished.copy(tmp_path / "finished")
