import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ganlm.files import complete, read_json, write_json, write_text

SCRIPTS = Path(__file__).parents[2] / "workflow/scripts"
HALF_A_WRITE = """
import sys, time
from ganlm.files import complete
with complete(sys.argv[1]) as path:
    with path.open("w") as file:
        file.write("half of it")
        file.flush()
        print("half", flush=True)
        time.sleep(60)
"""


def killed_while_writing(path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_A_WRITE, path],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "half\n"
    written = [file.read_text() for file in path.parent.iterdir() if file != path]
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert written == ["half of it"], "the kill must hit a write that had begun"


def test_a_killed_write_leaves_no_half_file(tmp_path):
    path = tmp_path / "result.json"
    killed_while_writing(path)
    assert not path.exists()
    write_text(path, "all of it")
    assert path.read_text() == "all of it"


def test_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    write_text(path, "old")
    killed_while_writing(path)
    assert path.read_text() == "old"


def test_a_failed_write_leaves_nothing_at_all(tmp_path):
    with pytest.raises(RuntimeError), complete(tmp_path / "result") as path:
        path.write_text("half of it")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_the_name_appears_only_at_the_end(tmp_path):
    target = tmp_path / "result"
    with complete(target) as path:
        path.write_text("all of it")
        assert not target.exists()
        assert path.parent == target.parent, "a rename is atomic within one file system only"
    assert [file.name for file in tmp_path.iterdir()] == ["result"]


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def noting(descriptor):
        synced.append((os.fstat(descriptor).st_ino, (tmp_path / "result").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    write_text(tmp_path / "result", "all of it")
    assert synced == [((tmp_path / "result").stat().st_ino, False)]


def test_json_does_not_depend_on_the_order_of_keys(tmp_path):
    data = {"b": [1, 2.5, None], "a": {"z": "é", "y": 0.1 + 0.2}}
    write_json(tmp_path / "one.json", data)
    write_json(tmp_path / "two.json", dict(reversed(data.items())))
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert read_json(tmp_path / "one.json") == data
    assert json.loads((tmp_path / "one.json").read_text()) == data


def test_data_that_is_not_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": 1, "b": object()})
    assert read_json(path) == {"a": 1}
