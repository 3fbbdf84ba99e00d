"""A throw-away Slurm on this machine: the real daemons, two virtual nodes, a GPU that is none.

All its files are below one folder, all its traffic goes through the loopback device.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import psutil
from clone import BIN

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
NODES = ("node1", "node2")
GPU_NODE = NODES[0]
# What a node must offer so that the largest stage fits into it.
CPUS, MEMORY_MB = 2, 8000
COMMAND_SECONDS = 30

# Without `config_overrides` a node that claims more than the machine has would be drained.
# `cred_expire` is also how long a job of a dead node waits before it starts again.
CONFIGURATION = """
ClusterName=onebox
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/munge/socket,cred_expire=10
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=5
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=3600
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={gpu_node} DefaultTime=10 MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """What has to be installed first."""
    return [name for name in PROGRAMS if shutil.which(name, path=_search_path()) is None]


class Job(NamedTuple):
    """A line of the queue; the comment holds the rule and its wildcards."""

    id: str
    state: str
    node: str
    comment: str
    restarts: int


@dataclass(frozen=True)
class Cluster:
    """Munge, a controller and two nodes, each a process that is ended by its number."""

    root: Path
    _ports: list[int] = field(default_factory=lambda: free_ports(1 + len(NODES)))

    @property
    def environment(self) -> dict[str, str]:
        """For programs that talk to this cluster."""
        path = os.pathsep.join([str(self.root / "bin"), str(BIN), _search_path()])
        return {"SLURM_CONF": str(self.root / "etc/slurm.conf"), "PATH": path}

    def start(self) -> None:
        """Until a job has run on all nodes."""
        self._write_files()
        munge = self.root / "munge"
        self._daemon(
            "munged",
            "--force",  # whoever can read a test's folder is the user who runs it
            f"--key-file={munge}/key",
            f"--socket={munge}/socket",
            f"--pid-file={self.root}/run/munged.pid",
            f"--log-file={self.root}/log/munged.log",
            f"--seed-file={munge}/seed",
        )
        wait_until((munge / "socket").exists, "munge listens")
        self._daemon("slurmctld")
        for node in NODES:
            self.start_node(node)
        wait_until(lambda: self._idle_nodes() == set(NODES), "all nodes are idle")
        count = str(len(NODES))
        self.command("srun", "--nodes", count, "--ntasks", count, "--mem=10", "true")

    def stop(self) -> None:
        """Cancel what runs, then end the daemons, nodes first: all of them, whatever goes wrong before."""
        with ExitStack() as last:
            for name in ("munged", "slurmctld", *reversed(NODES)):
                last.callback(self._end, name)
            if self._alive("slurmctld"):
                self.command("scancel", "--user", _user())
                with suppress(TimeoutError):
                    wait_until(lambda: not self.command("squeue", "--noheader"), "the queue is empty")

    def command(self, *arguments: str) -> str:
        """What a program of Slurm prints; it must succeed."""
        result = subprocess.run(
            arguments,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert result.returncode == 0, (arguments, result.stderr)
        return result.stdout

    def jobs(self, folder: Path, rule: str = "") -> list[Job]:
        """Submitted from a folder, for a rule, the first one first; those that are over too."""
        form = "JobID:|,State:|,NodeList:|,RestartCnt:|,WorkDir:500|,Comment:200"
        listing = self.command("squeue", "--states=all", "--noheader", "--sort=i", f"--Format={form}")
        jobs = []
        for line in listing.splitlines():
            number, state, node, restarts, workdir, comment = map(str.strip, line.split("|"))
            if Path(workdir) == folder.resolve() and comment.startswith(f"rule_{rule}"):
                jobs.append(Job(number, state, node, comment, int(restarts)))
        return jobs

    def limit(self, job: Job, minutes: int) -> None:
        """Let a running job run for so many more minutes at most; with 0, its time is or soon will be up."""
        start = next(each for each in self.asked(job) if each.startswith("StartTime=")).partition("=")[2]
        elapsed = (datetime.now() - datetime.fromisoformat(start)).total_seconds()
        self.command(
            "scontrol", "update", f"JobId={job.id}", f"TimeLimit={max(1, int(elapsed // 60) + minutes)}"
        )

    def asked(self, job: Job) -> set[str]:
        """What a job asked for, as `Name=value`."""
        return set(self.command("scontrol", "show", "job", job.id).split())

    def cancel(self, folder: Path) -> None:
        """All jobs that were submitted from a folder, until they are gone."""
        for job in self.jobs(folder):
            self.command("scancel", job.id)
        over = {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
        wait_until(lambda: {job.state for job in self.jobs(folder)} <= over, "the jobs are over")

    def start_node(self, name: str) -> None:
        """Its daemon ends what is left of jobs that were taken from it."""
        self._daemon("slurmd", "-N", name)

    def kill_node(self, name: str) -> None:
        """As a crash would: what it started lives on."""
        self._process(name).send_signal(signal.SIGKILL)
        wait_until(lambda: not self._alive(name), f"{name} is dead")

    def _write_files(self) -> None:
        for folder in ("etc", "run", "log", "state", "munge", "bin", *(f"spool/{name}" for name in NODES)):
            (self.root / folder).mkdir(parents=True)
        key = self.root / "munge/key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        host = socket.gethostname().partition(".")[0]
        nodes = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} "
            f"RealMemory={MEMORY_MB}{' Gres=gpu:1' if name == GPU_NODE else ''} State=UNKNOWN"
            for name, port in zip(NODES, self._ports[1:], strict=True)
        ]
        text = CONFIGURATION.format(
            host=host,
            controller_port=self._ports[0],
            user=_user(),
            root=self.root,
            nodes="\n".join(nodes),
            gpu_node=GPU_NODE,
        )
        (self.root / "etc/slurm.conf").write_text(text)
        (self.root / "etc/gres.conf").write_text(f"NodeName={GPU_NODE} Name=gpu File=/dev/null\n")
        # The step inside a job starts `srun` without SLURM_CONF: give it back. On a real cluster the
        # configuration is where Slurm looks for it.
        srun = self.root / "bin/srun"
        real = shutil.which("srun", path=_search_path())
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.root}/etc/slurm.conf exec {real} "$@"\n')
        srun.chmod(0o755)

    def _daemon(self, *arguments: str) -> None:
        self.command(*arguments)

    def _idle_nodes(self) -> set[str]:
        """None as long as the controller does not answer."""
        with suppress(AssertionError):
            lines = self.command("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
            return {name for name, state in map(str.split, lines) if state == "idle"}
        return set()

    def _process(self, name: str) -> psutil.Process:
        return psutil.Process(int((self.root / f"run/{name}.pid").read_text()))

    def _alive(self, name: str) -> bool:
        try:
            return self._process(name).status() != psutil.STATUS_ZOMBIE
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return False

    def _end(self, name: str) -> None:
        if not self._alive(name):
            return
        process = self._process(name)
        process.terminate()
        try:
            wait_until(lambda: not self._alive(name), f"{name} is over", seconds=10)
        except TimeoutError:
            process.kill()


def wait_until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Ask ten times a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s until {what}")
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback device that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _search_path() -> str:
    """Daemons are where a user's PATH may not lead."""
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def _user() -> str:
    return psutil.Process().username()
