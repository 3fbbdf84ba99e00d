"""Copies of this repository in which the real Snakemake runs."""

import os
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
TIMEOUT_SECONDS = 1500

_JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):\n((?:    .*\n)*)", re.MULTILINE)
_TOTAL = re.compile(r"^total +(\d+)$", re.MULTILINE)


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment; dry-runs write to stdout, real runs to stderr: take both."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=_environment() | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def _environment() -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE_")}
    return inherited | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


def cpu_seconds() -> float:
    """Of all children so far: a busy machine makes wall time longer, not this."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def succeed(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a program that must not fail printed."""
    result = run(*command, cwd=cwd, **environment)
    assert result.returncode == 0, result.stdout
    return result.stdout


def without_network() -> list[str]:
    """The prefix of a command that has no network, where the system allows that."""
    for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        try:
            subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            continue
        return prefix
    return []


@dataclass(frozen=True)
class Plan:
    """What Snakemake would do: jobs as `rule` or `rule wildcards`, their models, what they read and write."""

    jobs: frozenset[str]
    models: frozenset[str]
    inputs: frozenset[str]
    outputs: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the output of a dry-run, whose own count of jobs must agree."""
        jobs, models, inputs, outputs, found = set(), set(), set(), set(), 0
        for rule, body in _JOB.findall(text):
            found += 1
            fields = dict(re.findall(r"^    (\w+): (.*)$", body, re.MULTILINE))
            if "output" in fields:
                wildcards = dict(re.findall(r"(\w+)=([^,]*)", fields.get("wildcards", "")))
                jobs.add(" ".join([rule, *wildcards.values()]))
                models.update({wildcards["model"]} if "model" in wildcards else ())
                inputs.update(fields.get("input", "").split(", "))
                outputs.update(fields["output"].split(", "))
        total = _TOTAL.search(text)
        assert found == (int(total[1]) if total else 0), text
        assert total or "Nothing to be done" in text, text
        return cls(frozenset(jobs), frozenset(models), frozenset(inputs), frozenset(outputs))


@dataclass(frozen=True)
class Clone:
    """One copy, with results of its own."""

    path: Path

    @classmethod
    def of_repository(cls, path: Path) -> Self:
        """What git would clone, and what is about to be added."""
        listing = succeed("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
        for name in filter(lambda name: (ROOT / name).is_file(), listing.splitlines()):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
        return cls(path)

    def copy(self, path: Path) -> Self:
        """Another one in the same state, in another place."""
        return type(self)(shutil.copytree(self.path, path, symlinks=True))

    def run(self, *arguments: str, config: str | None = "config/tiny.yaml", **environment: str) -> str:
        """What Snakemake printed; it must succeed."""
        return succeed(*_command(arguments, config), cwd=self.path, **environment)

    def attempt(
        self, *arguments: str, config: str | None = "config/tiny.yaml", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """What became of a Snakemake call that may fail."""
        return run(*_command(arguments, config), cwd=self.path, **environment)

    def start(
        self, *arguments: str, config: str | None = "config/tiny.yaml", **environment: str
    ) -> subprocess.Popen[bytes]:
        """A Snakemake call in a process group of its own; it prints to `snakemake.out`."""
        with (self.path / "snakemake.out").open("w") as output:
            return subprocess.Popen(
                _command(arguments, config),
                cwd=self.path,
                env=_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def plan(self, *arguments: str, config: str | None = "config/tiny.yaml") -> Plan:
        """What Snakemake would do."""
        return Plan.parse(self.run("--dry-run", *arguments, config=config))

    def write_config(self, name: str, **config: object) -> str:
        """Write an experiment of that name; returns its config file."""
        file = f"config/{name}.yaml"
        (self.path / file).write_text(yaml.safe_dump({"name": name} | config))
        return file

    def results(self, name: str = "tiny") -> Path:
        """Where an experiment's results are."""
        return self.path / "results" / name


def _command(arguments: tuple[str, ...], config: str | None) -> list[str]:
    """With `=`, the option takes one file instead of everything up to the next option."""
    return ["snakemake", *([f"--configfile={config}"] if config else []), *arguments]
