import logging
import os
import pickle
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ganlm.locks import only_writer
from ganlm.training.checkpoint import Checkpoint, CheckpointError, collect, restore

KEY = {"code": {"b.py": "1", "a.py": "2"}, "settings": [1, None, 0.1]}

SAVE_AGAIN_AND_AGAIN = """
import sys
from pathlib import Path
import torch
from ganlm.training.checkpoint import Checkpoint
checkpoint = Checkpoint(Path(sys.argv[1]), "key", 0)
for number in range(1_000_000):
    checkpoint.save({"x": torch.full((300_000,), float(number))}, {"number": number})
    print(number, flush=True)
"""
STEP_AFTER_STEP = """
import sys, time
from pathlib import Path
import torch
from ganlm.training.checkpoint import Checkpoint
checkpoint = Checkpoint(Path(sys.argv[1]), "key", 3600)
with checkpoint.saving_on_sigterm():
    for number in range(int(sys.argv[2])):
        print(number, flush=True)
        time.sleep(0.05)
        if checkpoint.due():
            checkpoint.save({"x": torch.zeros(1)}, {"number": number})
print("writing results", flush=True)
time.sleep(60)
"""


def parts(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A network with a buffer and a frozen parameter, and two groups of Adam's."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.BatchNorm1d(12), nn.Linear(12, 5))
    network[3].bias.requires_grad_(False)
    groups = [{"params": network[:3].parameters()}, {"params": network[3].parameters(), "lr": 0.003}]
    return network, torch.optim.Adam(groups, lr=0.01)


def step(network: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
    torch.manual_seed(number)
    tokens = torch.randint(5, (8, 3))
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(tokens), tokens[:, 0]).backward()
    optimizer.step()


@pytest.mark.parametrize("interruption", [0, 1, 7, 19])
def test_training_goes_on_bit_by_bit(interruption, tmp_path):
    network, optimizer = parts(seed=1)
    for number in range(20):
        step(network, optimizer, number)
    expected = collect(network=network, optimizer=optimizer)

    network, optimizer = parts(seed=1)
    for number in range(interruption):
        step(network, optimizer, number)
    saved = collect(network=network, optimizer=optimizer)
    Checkpoint(tmp_path, KEY, 0).save(saved, {"done": interruption})

    network, optimizer = parts(seed=2)
    tensors, progress = Checkpoint(tmp_path, KEY, 0).load()
    restore(tensors, network=network, optimizer=optimizer)
    for number in range(progress["done"], 20):
        step(network, optimizer, number)
    found = collect(network=network, optimizer=optimizer)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_everything_is_collected():
    network, optimizer = parts(seed=1)
    step(network, optimizer, 0)
    names = set(collect(generator=network, adam=optimizer))
    assert {f"generator/{name}" for name in network.state_dict()} < names
    moments = {name for name in names if name.startswith("adam/")}
    trained = sum(parameter.requires_grad for parameter in network.parameters())
    assert len(moments) == 3 * trained, "step, exp_avg and exp_avg_sq of each trained parameter"


def test_parts_whose_names_begin_alike_are_kept_apart():
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    tensors = collect(net=one, network=other)
    one_again, other_again = nn.Linear(2, 2), nn.Linear(2, 2)
    restore(tensors, net=one_again, network=other_again)
    assert torch.equal(one.weight, one_again.weight)
    assert torch.equal(other.weight, other_again.weight)


def test_progress_comes_back_as_it_was(tmp_path):
    progress = {"history": [{"loss": 0.1 + 0.2, "bpc": float("inf")}], "epoch": 3, "none": None}
    Checkpoint(tmp_path, KEY, 0).save({"x": torch.zeros(1)}, progress)
    tensors, found = Checkpoint(tmp_path, KEY, 0).load()
    assert found == progress
    assert tensors.keys() == {"x"}


def test_no_file_is_no_checkpoint(tmp_path):
    assert Checkpoint(tmp_path, KEY, 0).load() is None


def test_views_are_saved_as_what_they_show(tmp_path):
    values = torch.arange(12.0).reshape(3, 4)
    Checkpoint(tmp_path, KEY, 0).save({"t": values.T, "half": values[1:] + 0}, {})
    tensors, _ = Checkpoint(tmp_path, KEY, 0).load()
    assert torch.equal(tensors["t"], values.T)
    assert torch.equal(tensors["half"], values[1:])


def saved(folder: Path) -> bytes:
    checkpoint = Checkpoint(folder, KEY, 0)
    checkpoint.save({"x": torch.arange(1000.0), "y": torch.zeros(())}, {"epoch": 1})
    return checkpoint.path.read_bytes()


def refused(folder: Path, content: bytes) -> None:
    checkpoint = Checkpoint(folder, KEY, 0)
    checkpoint.path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load()
    message = str(caught.value)
    assert message.startswith(f"{checkpoint.path} is damaged (")
    assert message.endswith("): delete it to train from the start")
    assert "\n" not in message


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, 0.5, -4000, -2, -1])
def test_a_truncated_file_is_named_and_refused(length, tmp_path):
    whole = saved(tmp_path)
    refused(tmp_path, whole[: int(length * len(whole)) if isinstance(length, float) else length])


@pytest.mark.parametrize(
    "content",
    [b"\xff" * 5000, bytes(5000), b"no checkpoint\n" * 10, (2).to_bytes(8, "little") + b"[]", b"PK\x03\x04"],
    ids=["ones", "zeros", "text", "other JSON", "a ZIP"],
)
def test_garbage_is_named_and_refused(content, tmp_path):
    refused(tmp_path, content)


def test_more_than_the_file_is_named_and_refused(tmp_path):
    refused(tmp_path, saved(tmp_path) + b"more")


class Trap:
    """What unpickling would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (open, (str(self.path), "w"))


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    trap = Trap(tmp_path / "executed")
    refused(tmp_path, pickle.dumps(trap))
    torch.save({"network": trap}, tmp_path / "pickle.pt")
    refused(tmp_path, (tmp_path / "pickle.pt").read_bytes())
    assert not trap.path.exists()
    pickle.loads(pickle.dumps(trap)).close()
    assert trap.path.exists(), "the trap works"


@pytest.mark.parametrize("key", [None, {}, KEY | {"settings": [1, None, 0.2]}, KEY | {"more": 0}])
def test_a_checkpoint_of_another_run_is_set_aside_with_a_warning(key, tmp_path, caplog):
    saved(tmp_path)
    checkpoint = Checkpoint(tmp_path, key, 0)
    with caplog.at_level(logging.WARNING):
        assert checkpoint.load() is None
    (aside,) = tmp_path.iterdir()
    assert caplog.messages == [
        f"{checkpoint.path} belongs to other settings, code, data or hardware: set aside as {aside.name}, "
        "until they are back"
    ]


def test_settings_that_were_changed_by_mistake_can_be_changed_back(tmp_path):
    """However many mistakes there were, and wherever each was stopped."""
    saved(tmp_path)
    ours = Checkpoint(tmp_path, KEY, 0).load()
    for number in (1, 2):
        other = Checkpoint(tmp_path, f"mistake {number}", 0)
        assert other.load() is None
        other.save({}, {"epoch": number})
    assert Checkpoint(tmp_path, "mistake 3", 0).load() is None, "stopped before it saved anything"
    tensors, progress = Checkpoint(tmp_path, KEY, 0).load()
    assert progress == ours[1]
    assert tensors.keys() == ours[0].keys()
    assert all(torch.equal(tensors[name], ours[0][name]) for name in tensors)
    for number in (2, 1):
        assert Checkpoint(tmp_path, f"mistake {number}", 0).load() == ({}, {"epoch": number})


def test_a_file_of_weights_only_is_ignored_with_a_warning(tmp_path, caplog):
    checkpoint = Checkpoint(tmp_path, KEY, 0)
    save_file({"x": torch.zeros(2)}, checkpoint.path)
    assert checkpoint.load() is None
    assert "set aside as resume-" in caplog.text


def test_the_order_of_the_key_does_not_matter(tmp_path):
    saved(tmp_path)
    assert Checkpoint(tmp_path, dict(reversed(KEY.items())), 0).load() is not None


def test_due_when_the_time_that_may_be_lost_is_over(tmp_path):
    assert Checkpoint(tmp_path, KEY, 0).due()
    now = [0]
    checkpoint = Checkpoint(tmp_path, KEY, 30, clock=lambda: now[0])
    assert not checkpoint.due()
    now[0] += 35
    assert checkpoint.due()
    checkpoint.save({}, {})
    assert not checkpoint.due()


def test_no_more_than_the_configured_time_is_ever_at_risk(tmp_path):
    """Steps of 10 s, 35 s to lose: saved after every third, before a fourth would be too much."""
    now, due = [0], []
    checkpoint = Checkpoint(tmp_path, KEY, 35, clock=lambda: now[0])
    for _ in range(9):
        now[0] += 10
        due.append(checkpoint.due())
        if due[-1]:
            checkpoint.save({}, {})
    assert due == [False, False, True] * 3


def test_a_save_that_fails_leaves_the_old_checkpoint(tmp_path):
    saved(tmp_path)
    checkpoint = Checkpoint(tmp_path, KEY, 0)
    with pytest.raises(TypeError):
        checkpoint.save({"x": torch.ones(5)}, {"epoch": object()})
    shared = torch.ones(5)
    with pytest.raises(RuntimeError, match="share memory"):
        checkpoint.save({"x": shared, "y": shared}, {"epoch": 2})
    assert checkpoint.load()[1] == {"epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["resume.safetensors"]


def test_a_kill_at_any_time_leaves_a_whole_checkpoint(tmp_path, child):
    """Real kills of a process that does little but save; what is left is what it last reported, or newer."""
    checkpoint, half_written = Checkpoint(tmp_path, "key", 0), 0
    for attempt in range(4):
        process = child(SAVE_AGAIN_AND_AGAIN, tmp_path)
        for _ in range(3):
            reported = int(process.stdout.readline())
        time.sleep(0.0013 * attempt)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        reported = max([reported, *map(int, process.stdout.read().split())])
        tensors, progress = checkpoint.load()
        assert reported <= progress["number"] <= reported + 1
        assert (tensors["x"] == progress["number"]).all()
        half_written += len(list(tmp_path.iterdir())) - 1
    assert half_written, "no kill hit a write: the test shows nothing"
    with only_writer(tmp_path / "resume.lock", 0):
        assert {path.name for path in tmp_path.iterdir()} == {"resume.safetensors", "resume.lock"}


def test_sigterm_ends_training_after_the_step_it_is_in(tmp_path, child):
    """Saved by nothing else: an hour may be lost. The status says that it is worth another try."""
    process = child(STEP_AFTER_STEP, tmp_path, "1000000")
    begun = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    printed, said = process.communicate(timeout=30)
    assert process.returncode == os.EX_TEMPFAIL == 75
    checkpoint = Checkpoint(tmp_path, "key", 0)
    assert said == f"ended by SIGTERM; {checkpoint.path} is saved, the same command goes on from there\n"
    assert checkpoint.load()[1] == {"number": int((begun + printed.split())[-1])}


def test_sigterm_after_training_ends_at_once(tmp_path, child):
    process = child(STEP_AFTER_STEP, tmp_path, "1")
    assert process.stdout.readline() == "0\n"
    assert process.stdout.readline() == "writing results\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == -signal.SIGTERM
