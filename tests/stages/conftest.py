"""What Snakemake hands to a script, made of Snakemake's own containers."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.iocontainers import InputFiles, Log, OutputFiles, Params, ResourceList, Wildcards


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., SimpleNamespace]:
    """A function that makes the `snakemake` object of a job; outputs are files in `tmp_path`."""

    def make(
        *, inputs: dict, outputs: dict[str, str], params: dict, wildcards: dict[str, str] | None = None
    ) -> SimpleNamespace:
        return SimpleNamespace(
            input=InputFiles(fromdict=inputs),
            output=OutputFiles(fromdict={name: str(tmp_path / file) for name, file in outputs.items()}),
            params=Params(fromdict=params),
            wildcards=Wildcards(fromdict=wildcards or {}),
            resources=ResourceList(fromdict={"device": "cpu", "checkpoint_seconds": 60, "lock_seconds": 0}),
            threads=1,
            log=Log([str(tmp_path / "stage.log")]),
        )

    return make
