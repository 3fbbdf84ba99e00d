"""One cluster for all tests, and Snakemake calls that are gone when their test is."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from clone import Clone
from slurm import Cluster, missing_programs


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)} not found: `make test-cluster`, as root, installs what is missing")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def submit(cluster: Cluster) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start Snakemake with the profile of this cluster."""
    started = []

    def popen(clone: Clone, *arguments: str, config: str) -> subprocess.Popen:
        profile = "--workflow-profile=profiles/slurm-test"
        started.append((clone, clone.start(profile, *arguments, config=config, **cluster.environment)))
        return started[-1][1]

    yield popen
    for clone, process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        cluster.cancel(clone.path)
