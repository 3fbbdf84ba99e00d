"""Kill a run again and again, at random, and compare what it ends with with a run that nobody disturbed.

    python tests/stress.py --kills 50 --seconds 3600 --seed 1

A kill is SIGKILL for all processes of a run, for one stage, or for Snakemake alone, whose stages then live on
while their successors start. After each, `snakemake --unlock` and the same command again, as the README says.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from clone import BIN, Clone

CONFIG = "config/tiny.yaml"
APART = ("logs", "benchmarks")
VICTIMS = ("all", "stage", "snakemake")
SCRIPTS = {path.name for path in (Path(__file__).parents[1] / "workflow/scripts").glob("*.py")}
ATTEMPTS_AT_THE_END = 20
# What a run may say after a kill: an orphan is in its way, or Snakemake's own lock is.
IN_THE_WAY = ("another process is at work and holds", "Directory cannot be locked")
OUTPUT = "stress.out"
LONGEST_RUN_SECONDS = 1800


@dataclass
class Tally:
    """What was killed: whom the kill was meant for, and which stages were running."""

    victims: Counter = field(default_factory=Counter)
    stages: Counter = field(default_factory=Counter)

    @property
    def kills(self) -> int:
        return self.victims.total()


@contextmanager
def running(clone: Clone) -> Iterator[subprocess.Popen]:
    """A run in a session of its own, which prints to a file; what is left of it in the end is killed."""
    with (clone.path / OUTPUT).open("w") as output:
        process = subprocess.Popen(
            ["snakemake", f"--configfile={CONFIG}"],
            cwd=clone.path,
            env=os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    except BaseException:
        kill_group(process)
        raise


def check_failure(clone: Clone) -> None:
    """A run that nobody killed may fail because an orphan is in its way, and for no other reason."""
    printed = (clone.path / OUTPUT).read_text(errors="replace")
    if not any(said in printed for said in IN_THE_WAY):
        sys.exit(f"a run failed, and nothing was in its way:\n{printed[-4000:]}")


def kill_group(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def stages(process: subprocess.Popen) -> dict[psutil.Process, str]:
    """The stages that a run has started, and their names."""
    found = {}
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                words = child.cmdline()[1:2]
                name = next((word.rsplit(".", 2)[-2] for word in words if is_stage(word)), None)
                if name:
                    found[child] = name
    return found


def is_stage(path: str) -> bool:
    """Snakemake runs copies of scripts, called `tmp1234.train_ngram.py`."""
    return ".".join(path.rsplit(".", 2)[-2:]) in SCRIPTS


def kill_once(clone: Clone, rng: random.Random, longest: float, tally: Tally) -> bool:
    """Start the run and kill some of it after a while; False if it was done before."""
    victim, delay = rng.choice(VICTIMS), rng.uniform(0, longest)
    with running(clone) as process:
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            pass
        else:
            if process.returncode:
                check_failure(clone)
            return process.returncode != 0
        alive = stages(process)
        victim = "all" if victim == "stage" and not alive else victim
        if kill(victim, process, alive, rng):
            tally.stages.update(set(alive.values()) or {"between stages"})
            tally.victims[victim] += 1
            running_then = sorted(set(alive.values()))
            print(f"kill {tally.kills}: {victim} after {delay:.1f} s, {running_then}", flush=True)
        elif process.returncode:
            check_failure(clone)
    clone.attempt("--unlock", config=CONFIG)
    return True


def kill(
    victim: str, process: subprocess.Popen, alive: dict[psutil.Process, str], rng: random.Random
) -> bool:
    """Kill, and wait until Snakemake is gone; False if the victim had ended by itself."""
    match victim:
        case "stage":
            child = rng.choice(sorted(alive, key=lambda child: alive[child]))
            return kill_stage(child, process)
        case "snakemake":
            process.kill()
        case "all":
            kill_group(process)
    return process.wait() == -signal.SIGKILL


def kill_stage(child: psutil.Process, process: subprocess.Popen) -> bool:
    """Snakemake sees its stage die, and fails; if it does not, the stage was over before it was killed."""
    try:
        child.kill()
    except psutil.NoSuchProcess:
        process.wait(timeout=LONGEST_RUN_SECONDS)
        return False
    return process.wait(timeout=LONGEST_RUN_SECONDS) != 0


def finish(clone: Clone) -> None:
    """The same command, until no orphan is in the way."""
    for _ in range(ATTEMPTS_AT_THE_END):
        with running(clone) as process:
            if process.wait(timeout=LONGEST_RUN_SECONDS) == 0:
                return
        check_failure(clone)
        clone.attempt("--unlock", config=CONFIG)
    sys.exit("the run did not end well after the last kill: see its logs")


def digests(clone: Clone) -> dict[str, str]:
    """Every result file but for locks, half files of what was killed, and what holds times."""
    root = clone.results()
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.relative_to(root).parts[0] not in APART
        and path.suffix not in (".lock", ".part")
        and not path.name.startswith(".tmp")
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="how many kills (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=3600, help="the time for all kills (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of victims and moments (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, help="work here, and leave it; by default in a temporary folder"
    )
    return parser.parse_args()


def stress(folder: Path, kills: int, seconds: float, seed: int) -> tuple[Tally, dict, dict]:
    """What was killed, and the files of the disturbed and of the undisturbed run."""
    begin, rng, tally = time.monotonic(), random.Random(seed), Tally()
    repository = Clone.of_repository(folder / "repository")
    whole = repository.copy(folder / "whole")
    finish(whole)
    longest = (time.monotonic() - begin) / 4
    print(f"undisturbed: {4 * longest:.0f} s", flush=True)
    disturbed, rounds = repository.copy(folder / "disturbed-1"), 1
    finals = [digests(whole)]
    while tally.kills < kills and time.monotonic() - begin < seconds:
        if not kill_once(disturbed, rng, longest, tally):
            finals.append(digests(disturbed))
            rounds += 1
            disturbed = repository.copy(folder / f"disturbed-{rounds}")
    finish(disturbed)
    finals.append(digests(disturbed))
    different = [files for files in finals if files != finals[0]]
    return tally, finals[0], different[0] if different else finals[0]


def main() -> None:
    given = arguments()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        tally, whole, disturbed = stress(folder, given.kills, given.seconds, given.seed)
    print(f"{tally.kills} kills in {time.monotonic() - begin:.0f} s, seed {given.seed}")
    print(f"victims: {dict(tally.victims)}")
    print(f"stages that were running: {dict(sorted(tally.stages.items()))}")
    differing = sorted(name for name in whole | disturbed if whole.get(name) != disturbed.get(name))
    if differing:
        sys.exit(f"{len(differing)} of {len(whole)} result files differ: {', '.join(differing[:10])}")
    if tally.kills < given.kills:
        sys.exit(f"only {tally.kills} of {given.kills} kills in {given.seconds:.0f} s: raise --seconds")
    print(f"{len(whole)} result files, all identical to those of an undisturbed run")


if __name__ == "__main__":
    main()
