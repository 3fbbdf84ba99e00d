"""What comes from a stranger cannot run code, write where it likes, or fill the disk."""

import ast
import gzip
import json
import lzma
import pickle
import re
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ganlm.corpus import Alphabet, load_tokens
from ganlm.generator import GeneratorError, Surroundings
from ganlm.models import counts
from ganlm.models.command import Command
from ganlm.models.ngram import NGram, Settings
from ganlm.resultfiles import read_rows, read_summary
from ganlm.resume import Journal
from ganlm.textfile import TextFileError, read_chunks
from ganlm.training.checkpoint import Checkpoint, CheckpointError

WORKFLOW = Path(__file__).parents[2] / "workflow"
SOURCES = sorted(WORKFLOW.rglob("*.py"))
RULES = [WORKFLOW.parent / "Snakefile", *sorted(WORKFLOW.rglob("*.smk"))]
RUN_CODE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {"eval", "exec", "compile", "system", "popen", "read_pickle", "unsafe_load", "full_load"}
HOSTILE = "; touch pwned; $(touch pwned) `touch pwned` {wildcards.model} '\" && touch pwned #"


def forbidden(tree: ast.AST) -> Iterator[str]:
    """What could run something that was read: unpickling, evaluation of text, a shell."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if {name.name.split(".")[0] for name in names} & RUN_CODE:
                yield f"import in line {node.lineno}"
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in RUN_CODE:
                yield f"import in line {node.lineno}"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in keywords}
                called = ast.unparse(node.func)
                if name in CALLS and node.args and not called.startswith("re."):  # network.eval() has none
                    yield f"{called} in line {node.lineno}"
                if called in ("torch.load", "yaml.load") or given.get("shell", "False") != "False":
                    yield f"{called} in line {node.lineno}"
                if given.get("allow_pickle", "False") != "False":
                    yield f"{called} in line {node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_source_can_run_what_it_reads(path: Path):
    assert list(forbidden(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import torch; torch.load('x')",
        "np.load('x', allow_pickle=True)",
        "eval('1')",
        "exec(text)",
        "os.system(command)",
        "subprocess.run(command, shell=True)",
        "subprocess.run(command, shell=flag)",
        "yaml.load(text)",
        "pd.read_pickle('x')",
    ],
)
def test_the_check_sees_what_it_looks_for(line: str):
    assert len(list(forbidden(ast.parse(line)))) == 1


def test_rules_hand_no_string_to_a_shell():
    """A script gets its params as data; a `shell:` or `run:` would paste or execute text."""
    assert len(RULES) > 8
    for path in RULES:
        assert not re.search(r"^\s*(shell|run|notebook|wrapper)\s*:", path.read_text(), re.MULTILINE), path
        assert not re.search(r"\b(eval|exec|os\.system)\(", path.read_text()), path


class Intruder:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return self.path.write_text, ("I was here",)


LOADERS = {
    "token file": load_tokens,
    "counts of n-grams": lambda path: NGram.load(path, 3, Settings(order=1)),
    "table of counts": lambda path: counts.load(
        {"file": str(path)}, [str(path)], Surroundings(Alphabet(tuple("abc")))
    ),
    "result rows": read_rows,
    "summary": read_summary,
    "text": lambda path: b"".join(read_chunks(path)),
    "checkpoint": lambda path: checkpoint_at(path).load(),
    "array of a journal": lambda path: journal_at(path).array("x", lambda: np.ones(1)),
}


def checkpoint_at(path: Path) -> Checkpoint:
    path.replace(path.with_name("resume.safetensors"))
    return Checkpoint(path.parent, "key", 60)


def journal_at(path: Path) -> Journal:
    journal = Journal(path.with_name("journal"), "key")
    journal.array("x", lambda: np.zeros(1))
    (array,) = path.parent.glob("journal.*.x.npy")
    path.replace(array)
    return journal


@pytest.mark.parametrize("packing", ["pickle", "array", "torch"])
@pytest.mark.parametrize("what", LOADERS)
def test_no_loader_unpickles(what: str, packing: str, tmp_path: Path):
    trace, path = tmp_path / "trace", tmp_path / "file"
    match packing:
        case "pickle":
            path.write_bytes(pickle.dumps(Intruder(trace)))
        case "array":
            with path.open("wb") as file:
                np.save(file, np.array([Intruder(trace)], object), allow_pickle=True)
        case "torch":
            torch.save({"network": Intruder(trace)}, path)
    if what == "text" and packing != "torch":  # bytes like any others; torch writes a zip of several files
        LOADERS[what](path)
    else:
        with pytest.raises(ValueError, match=r"^[^\n]+"):
            LOADERS[what](path)
    assert not trace.exists()


def test_the_intruder_would_have_been_seen(tmp_path: Path):
    pickle.loads(pickle.dumps(Intruder(tmp_path / "trace")))
    assert (tmp_path / "trace").exists()


def linked_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("text8")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")


def test_a_link_in_a_zip_is_refused(tmp_path: Path):
    linked_zip(tmp_path / "text.zip")
    with pytest.raises(TextFileError, match="holds a link instead of a text: do not trust this zip"):
        list(read_chunks(tmp_path / "text.zip"))


def deflated(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text8", content)


@pytest.mark.parametrize(
    "pack",
    [
        deflated,
        lambda path, content: path.write_bytes(gzip.compress(content)),
        lambda path, content: path.write_bytes(lzma.compress(content)),
    ],
    ids=["zip", "gz", "xz"],
)
def test_a_bomb_is_stopped_long_before_its_end(pack: Callable, tmp_path: Path):
    path, read = tmp_path / "text", 0
    pack(path, bytes(20_000_000))
    with pytest.raises(TextFileError, match="more than 100 times its size, as no text does") as caught:
        for chunk in read_chunks(path, chunk_bytes=10_000, bomb_bytes=1_000_000):
            read += len(chunk)
    assert "\n" not in str(caught.value)
    assert read <= max(1_000_000, 100 * path.stat().st_size)


def test_a_short_or_ordinary_text_is_no_bomb(tmp_path: Path):
    deflated(tmp_path / "short", bytes(900_000))
    assert len(b"".join(read_chunks(tmp_path / "short", bomb_bytes=1_000_000))) == 900_000
    letters = np.random.default_rng(1).integers(97, 123, 2_000_000, np.uint8).tobytes()
    deflated(tmp_path / "long", letters)
    assert b"".join(read_chunks(tmp_path / "long", bomb_bytes=1_000_000)) == letters


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory two levels below what a `../..` reaches."""
    home = tmp_path / "a/b"
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    return home


def everything_below(path: Path) -> set[str]:
    return {found.relative_to(path).as_posix() for found in path.rglob("*") if found.is_file()}


def test_a_strangers_checkpoint_writes_nothing_and_is_not_believed(home: Path, tmp_path: Path):
    """Names and metadata are data: none of them becomes a path."""
    names = ["../../evil", "/tmp/evil", "network/../../evil"]
    metadata = {"key": '"key"', "progress": "__import__('os').system('touch evil')"}
    save_file({name: torch.zeros(1) for name in names}, home / "resume.safetensors", metadata)
    with pytest.raises(
        CheckpointError, match="does not say how far it is: delete it to train from the start"
    ):
        Checkpoint(home, "key", 60).load()
    save_file({"x": torch.zeros(1)}, home / "resume.safetensors", {"key": '"another"'})
    assert Checkpoint(home, "key", 60).load() is None
    (found,) = everything_below(tmp_path)
    assert re.fullmatch(r"a/b/resume-[0-9a-f]{12}\.safetensors", found)


def test_a_zip_writes_no_file_whatever_it_calls_its_member(home: Path, tmp_path: Path):
    for name in ("../evil", "/tmp/evil", "a/../../evil"):
        with zipfile.ZipFile(home / "text.zip", "w") as archive:
            archive.writestr(name, "abc")
        with pytest.raises(TextFileError, match="leaves its folder"):
            list(read_chunks(home / "text.zip"))
    assert everything_below(tmp_path) == {"a/b/text.zip"}


def test_cells_of_a_table_of_counts_are_not_evaluated(home: Path, tmp_path: Path):
    header = f"# ganlm counts, version 1, test sha256 {'0' * 64}, window 10\nposition,n,k\n"
    (home / "counts.csv").write_text(header + "=cmd|'/C touch evil'!A1,10,__import__('os').getpid()\n")
    with pytest.raises(GeneratorError, match="not a table of whole numbers"):
        LOADERS["table of counts"](home / "counts.csv")
    assert everything_below(tmp_path) == {"a/b/counts.csv"}


@pytest.mark.usefixtures("home")
def test_a_program_gets_its_arguments_as_they_are():
    """Through a shell, the hostile one would leave a file."""
    source = (
        "import json, sys; from pathlib import Path; sys.stdin.readline();"
        "Path('arguments').write_text(json.dumps(sys.argv[1:])); print(json.dumps({'ganlm': 1}), flush=True);"
        "sys.stdin.read()"
    )
    program = Command([sys.executable, "-c", source, HOSTILE, "*"], 20, Surroundings(Alphabet(("a", "b"))))
    program.close()
    assert json.loads(Path("arguments").read_text()) == [HOSTILE, "*"]
    assert everything_below(Path()) == {"arguments"}


@pytest.mark.usefixtures("home")
def test_a_program_is_no_command_line():
    with pytest.raises(GeneratorError, match="cannot start"):
        Command(["touch pwned"], 5, Surroundings(Alphabet(("a", "b"))))
    assert everything_below(Path()) == set()
