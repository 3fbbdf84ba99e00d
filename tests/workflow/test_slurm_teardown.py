"""The throw-away cluster of tests/cluster leaves no daemon behind."""

import subprocess

import pytest
from slurm import NODES, Cluster

DAEMONS = [*NODES, "slurmctld", "munged"]


@pytest.mark.parametrize("error", [AssertionError("refused"), subprocess.TimeoutExpired("scancel", 30)])
@pytest.mark.parametrize("stubborn", [None, *DAEMONS])
def test_every_daemon_is_ended_whatever_goes_wrong(error, stubborn, tmp_path, monkeypatch):
    ended = []

    def fail(*_: str) -> str:
        raise error

    def end(_: Cluster, name: str) -> None:
        ended.append(name)
        if name == stubborn:
            raise PermissionError(name)

    monkeypatch.setattr(Cluster, "_alive", lambda *_: True)
    monkeypatch.setattr(Cluster, "command", fail)
    monkeypatch.setattr(Cluster, "_end", end)
    with pytest.raises(PermissionError if stubborn else type(error)):
        Cluster(tmp_path).stop()
    assert ended == DAEMONS
