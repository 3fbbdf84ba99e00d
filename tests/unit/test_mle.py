import json
import logging
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from ganlm.models.lstm import START, Architecture, LanguageModel, Lstm
from ganlm.training.checkpoint import Checkpoint, CheckpointError
from ganlm.training.divergence import DivergenceError
from ganlm.training.mle import Outcome, Settings, epoch_windows, train, validate

SCRIPTS = Path(__file__).parents[2] / "workflow/scripts"
CPU = torch.device("cpu")
SETTINGS = Settings(
    epochs=6,
    updates=5,
    batch=4,
    window=8,
    carry=False,
    learning_rate=0.01,
    decay=1,
    decay_from=6,
    schedule="constant",
    clip=5,
    precision="float32",
    validate_every=1,
    validation_tokens=400,
    validation_window=50,
    seed=1,
)
POSITIONS = np.arange(1000)
VOCABULARY = 6

TRAIN_HERE = """
import json, sys
from pathlib import Path
import numpy as np
import torch
from ganlm.models.lstm import Architecture, LanguageModel
from ganlm.training import mle
from ganlm.training.checkpoint import Checkpoint

torch.set_num_threads(1)
folder, epoch, settings = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
torch.manual_seed(1)
network = LanguageModel(6, Architecture(4, 8, 1, 0.25))

class Reporting(Checkpoint):
    def save(self, tensors, progress):
        super().save(tensors, progress)
        if len(progress["history"]) == epoch:
            print("there", flush=True)
            sys.stdin.readline()

tokens = [np.load(folder / f"{part}.npy") for part in ("train", "valid")]
mle.train(network, *tokens, mle.Settings(**settings), torch.device("cpu"), Reporting(folder, "key", 0))
"""


def text(length: int, seed: int) -> np.ndarray:
    """A noisy cycle: the next token is the last plus one, three times out of four."""
    steps = np.random.default_rng(seed).choice(VOCABULARY, length, p=[0.05, 0.75, *[0.05] * 4])
    return (np.cumsum(steps) % VOCABULARY).astype(np.uint8)


TRAIN, VALID = text(20_000, 1), text(1_000, 2)


def network(dropout: float = 0.25) -> LanguageModel:
    torch.manual_seed(1)
    return LanguageModel(VOCABULARY, Architecture(4, 8, 1, dropout))


def trained(
    folder: Path, settings: Settings = SETTINGS, seconds: float = 0, key: str = "key"
) -> tuple[LanguageModel, Outcome]:
    folder.mkdir(exist_ok=True)
    model = network()
    return model, train(model, TRAIN, VALID, settings, CPU, Checkpoint(folder, key, seconds))


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def windows_of(epoch: int, tokens: np.ndarray = POSITIONS, **changes) -> np.ndarray:
    return epoch_windows(tokens, epoch, replace(SETTINGS, **changes))


def test_windows_are_of_fixed_phase_and_drawn_without_replacement():
    windows = windows_of(1)
    assert windows.shape == (5, 4, 8)
    assert windows.dtype == np.int64
    starts = windows[:, :, 0].ravel()
    assert (starts % 8 == 0).all()
    assert len(set(starts)) == len(starts)
    assert (windows == windows[:, :, :1] + np.arange(8)).all()


def test_an_epoch_may_use_up_all_windows_and_never_the_rest_of_the_text():
    everything = windows_of(1, np.arange(5 * 4 * 8 + 7))
    assert sorted(everything.ravel()) == list(range(5 * 4 * 8))


def test_windows_follow_from_seed_and_epoch():
    assert np.array_equal(windows_of(3), windows_of(3))
    assert not np.array_equal(windows_of(3), windows_of(4))
    assert not np.array_equal(windows_of(3), windows_of(3, seed=2))


def test_all_windows_are_equally_likely():
    """Over 2000 epochs of 20 of 125 windows, each is seen 320 times but for 5 standard errors."""
    seen = np.bincount(np.concatenate([windows_of(epoch)[:, :, 0].ravel() for epoch in range(2000)]) // 8)
    assert seen.shape == (125,)
    assert np.abs(seen - 320).max() < 5 * math.sqrt(2000 * 0.16 * 0.84)


def test_a_narrow_token_type_does_not_wrap():
    tokens = np.arange(256, dtype=np.uint8)
    assert windows_of(1, tokens).max() > 127


def test_carried_windows_read_on_in_their_own_stretch():
    stretch = 250
    windows = np.concatenate([windows_of(epoch, carry=True) for epoch in range(1, 20)])
    assert windows.shape == (19 * 5, 4, 9)
    assert (windows == windows[:, :, :1] + np.arange(9)).all()
    for row in range(4):
        mine = windows[:, row]
        assert mine.min() == row * stretch
        assert mine.max() < (row + 1) * stretch
        jumps = np.diff(mine[:, 0])
        assert set(jumps[jumps > 0]) == {8}, "inputs begin where the last targets ended"
        assert (jumps < 0).sum() == 3, "19 epochs of 40 tokens are three times round"
        targets = np.unique(mine[:, 1:])
        assert len(targets) > stretch - 8, "all of the stretch is learned from"


@pytest.mark.parametrize("length", [36, 37, 39, 40, 100])
def test_carried_windows_stay_in_the_text_however_short_it_is(length):
    for epoch in range(1, 30):
        windows = windows_of(epoch, np.arange(length), carry=True)
        assert windows.min() >= 0
        assert windows.max() < length
        assert (windows // (length // 4) == np.arange(4)[:, None]).all()


@pytest.mark.parametrize(("length", "carry", "needed"), [(159, False, 160), (0, False, 160), (35, True, 36)])
def test_a_text_too_short_for_an_epoch_gets_a_sentence(length, carry, needed):
    with pytest.raises(ValueError, match="the train part has") as caught:
        windows_of(1, np.arange(length), carry=carry)
    assert str(caught.value) == (
        f"the train part has {length} tokens, but an epoch of these settings reads {needed}: "
        "use a longer text, or lower updates, batch or window"
    )
    assert windows_of(1, np.arange(needed), carry=carry).shape[:2] == (5, 4)


def test_a_constant_rate_is_constant():
    assert {SETTINGS.rate(epoch) for epoch in range(1, 500)} == {0.01}


def test_decay_divides_at_every_epoch_from_the_sixth_on():
    settings = replace(SETTINGS, decay=2.0)
    assert [settings.rate(epoch) for epoch in range(1, 6)] == [0.01] * 5
    assert [settings.rate(epoch) for epoch in (6, 7, 8)] == pytest.approx([0.005, 0.0025, 0.00125], rel=1e-12)


@pytest.mark.parametrize("decay", [2, 2.0])
def test_decay_goes_on_to_nothing(decay):
    assert replace(SETTINGS, decay=decay).rate(5000) == 0


def test_the_cosine_starts_at_the_rate_and_ends_near_nothing():
    settings = replace(SETTINGS, epochs=100, schedule="cosine")
    rates = [settings.rate(epoch) for epoch in range(1, 101)]
    assert rates[0] == 0.01
    assert rates[50] == pytest.approx(0.005)
    assert 0 < rates[-1] < 1e-5
    assert (np.diff(rates) < 0).all()


@pytest.mark.parametrize("changes", [{}, {"precision": "bfloat16"}, {"carry": True}, {"schedule": "cosine"}])
def test_training_learns_more_than_the_frequencies_of_tokens(changes, tmp_path):
    """The noisy cycle has 2.58 bits by frequencies, 1.47 by its rule."""
    settings = replace(SETTINGS, epochs=6, updates=60, batch=16, learning_rate=0.03, **changes)
    _, outcome = trained(tmp_path, settings)
    shares = np.bincount(TRAIN) / len(TRAIN)
    unigram = -(shares * np.log2(shares)).sum()
    rule = -(0.75 * math.log2(0.75) + 5 * 0.05 * math.log2(0.05))
    assert outcome.history[0]["loss"] > outcome.history[-1]["loss"]
    assert outcome.history[-1]["loss"] < (unigram + rule) / 2
    assert rule - 0.1 < outcome.best_bpc < (unigram + rule) / 2


def test_the_loss_is_the_bits_of_the_windows(tmp_path):
    """Without dropout and with a rate of nothing, the mean loss is what the model itself says."""
    settings = replace(SETTINGS, epochs=1, learning_rate=1e-30)
    model = network(dropout=0)
    outcome = train(model, TRAIN, VALID, settings, CPU, Checkpoint(tmp_path, "key", 0))
    windows = epoch_windows(TRAIN, 1, settings).reshape(-1, settings.window)
    scorer = Lstm(model, CPU)
    bits, _ = scorer.surprisal(scorer.start(len(windows)), windows)
    assert outcome.history[0]["loss"] == pytest.approx(bits.mean(), rel=1e-5)


def test_the_carried_loss_is_the_bits_of_the_running_text(tmp_path):
    """One row, one epoch: from the start token on, it reads token by token and predicts the next."""
    settings = replace(SETTINGS, epochs=1, batch=1, carry=True, learning_rate=1e-30)
    model = network(dropout=0)
    outcome = train(model, TRAIN, VALID, settings, CPU, Checkpoint(tmp_path, "key", 0))
    read = torch.from_numpy(TRAIN[: 5 * 8 + 1].astype(np.int64))[None]
    assert read[0, 0] != START, "or the start token could not be told from the one before"
    logits, _ = model(torch.cat([torch.full((1, 1), START), read[:, 1:-1]], dim=1))
    expected = torch.nn.functional.cross_entropy(logits[0], read[0, 1:]).item() / math.log(2)
    assert outcome.history[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_gradient_is_clipped_and_its_norm_recorded(tmp_path):
    """Adam forgets the scale of the gradient but for its epsilon: a tiny clip stops the training."""
    _, free = trained(tmp_path, replace(SETTINGS, clip=1e9), key="free")
    _, clipped = trained(tmp_path, replace(SETTINGS, clip=1e-12), key="clipped")
    assert free.history[-1]["loss"] < clipped.history[-1]["loss"]
    assert abs(clipped.history[0]["validation_bpc"] - clipped.history[-1]["validation_bpc"]) < 1e-3
    assert all(record["gradient_norm"] > 0.01 for record in clipped.history), "before the clip"
    assert all(record["largest_gradient_norm"] > record["gradient_norm"] for record in free.history)


def test_the_size_of_the_recurrent_weights_is_recorded(tmp_path):
    model, outcome = trained(tmp_path, SETTINGS, key="size")
    weights = model.lstm.weight_hh_l0.detach().numpy()
    assert outcome.history[-1]["recurrent_weight_rms"] == pytest.approx(np.sqrt((weights**2).mean()))
    assert outcome.history[0]["recurrent_weight_rms"] != outcome.history[-1]["recurrent_weight_rms"]


def test_validation_is_the_bits_of_windows_from_the_start_without_dropout():
    model = network(dropout=0.9).train()
    found = validate(model, VALID, SETTINGS, CPU)
    assert model.training
    scorer = Lstm(model, CPU)
    bits = [scorer.surprisal(scorer.start(1), VALID[None, i : i + 50])[0] for i in range(0, 400, 50)]
    assert found == pytest.approx(np.mean(bits), rel=1e-5)


@pytest.mark.parametrize(
    ("tokens", "window", "length"), [(10**6, 300, 900), (10, 50, 50), (10**6, 5000, 1000)]
)
def test_validation_uses_whole_windows_or_the_one_there_is(tokens, window, length):
    model = network()
    found = validate(model, VALID, replace(SETTINGS, validation_tokens=tokens, validation_window=window), CPU)
    scorer, size = Lstm(model, CPU), min(window, length)
    bits, _ = scorer.surprisal(scorer.start(length // size), VALID[:length].reshape(-1, size))
    assert found == pytest.approx(bits.mean(), rel=1e-5)


def test_the_best_epoch_on_validation_is_kept(tmp_path):
    """A rate far too high makes the bits go up and down."""
    settings = replace(SETTINGS, epochs=15, learning_rate=0.5)
    model, outcome = trained(tmp_path, settings)
    bpc = [record["validation_bpc"] for record in outcome.history]
    assert outcome.best_epoch == 1 + np.argmin(bpc) < 15, "the last one must not be the best"
    assert outcome.best_bpc == min(bpc)
    assert validate(model, VALID, settings, CPU) == bpc[-1]
    model.load_state_dict(outcome.best)
    assert validate(model, VALID, settings, CPU) == outcome.best_bpc


def test_validation_happens_when_asked_and_at_the_end(tmp_path):
    _, outcome = trained(tmp_path, replace(SETTINGS, epochs=7, validate_every=3))
    looked = [r["epoch"] for r in outcome.history if not math.isnan(r["validation_bpc"])]
    assert looked == [3, 6, 7]
    assert [record["epoch"] for record in outcome.history] == list(range(1, 8))


def test_looking_at_validation_does_not_change_training(tmp_path):
    often, _ = trained(tmp_path / "often", replace(SETTINGS, validate_every=1), seconds=math.inf)
    seldom, _ = trained(tmp_path / "seldom", replace(SETTINGS, validate_every=6), seconds=math.inf)
    assert same(often.state_dict(), seldom.state_dict())


def killed_after(epoch: int, folder: Path, settings: Settings) -> None:
    """A real process, killed once it has saved that epoch."""
    folder.mkdir()
    np.save(folder / "train.npy", TRAIN)
    np.save(folder / "valid.npy", VALID)
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN_HERE, folder, str(epoch), json.dumps(asdict(settings))],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "there\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("epoch", "changes"),
    [
        (1, {}),
        (3, {"carry": True, "schedule": "cosine"}),
        (5, {"precision": "bfloat16", "decay": 1.5, "decay_from": 2}),
        (6, {"validate_every": 4, "learning_rate": 0.5}),
    ],
)
def test_a_killed_training_goes_on_bit_by_bit(epoch, changes, tmp_path, caplog):
    """Weights, optimizer, record and best weights: all are those of the run that nobody killed."""
    settings = replace(SETTINGS, **changes)
    whole, expected = trained(tmp_path / "whole", settings)
    killed_after(epoch, tmp_path / "killed", settings)
    with caplog.at_level(logging.INFO):
        resumed, found = trained(tmp_path / "killed", settings)
    assert f"resuming after epoch {epoch}" in caplog.messages
    assert same(whole.state_dict(), resumed.state_dict())
    assert repr(found.history) == repr(expected.history), "repr, because NaN differs from itself"
    assert same(found.best, expected.best)
    assert (found.best_epoch, found.best_bpc) == (expected.best_epoch, expected.best_bpc)
    states = [Checkpoint(tmp_path / name, "key", 0).load()[0] for name in ("whole", "killed")]
    assert same(*states)
    assert any(name.startswith("optimizer/") for name in states[0])


def test_the_same_settings_give_the_same_bits(tmp_path):
    one, _ = trained(tmp_path / "one")
    same_again, _ = trained(tmp_path / "again")
    other, _ = trained(tmp_path / "other", replace(SETTINGS, seed=2))
    assert same(one.state_dict(), same_again.state_dict())
    assert not same(one.state_dict(), other.state_dict())


def test_other_settings_start_from_the_start(tmp_path, caplog):
    trained(tmp_path, key="before")
    model, outcome = trained(tmp_path, key="after")
    fresh, _ = trained(tmp_path / "fresh")
    assert "belongs to other settings" in caplog.text
    assert len(outcome.history) == SETTINGS.epochs
    assert same(model.state_dict(), fresh.state_dict())


def test_a_damaged_checkpoint_is_not_trained_over(tmp_path):
    path = tmp_path / "resume.safetensors"
    path.write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="delete it to train from the start"):
        trained(tmp_path)
    assert path.read_bytes() == b"damaged"


FOREIGN = {
    "no tensors": lambda _: {},
    "other weights": lambda tensors: tensors | {"network/output.bias": torch.zeros(2)},
    "other best weights": lambda tensors: tensors | {"best/output.bias": torch.zeros(2)},
    "other moments": lambda tensors: tensors | {"optimizer/0/exp_avg": torch.zeros(3)},
    "moments of nothing": lambda tensors: tensors | {"optimizer/99/exp_avg": torch.zeros(3)},
    "moments without a number": lambda tensors: tensors | {"optimizer/x/exp_avg": torch.zeros(3)},
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_checkpoint_with_other_tensors_is_named(tmp_path, what):
    """Its key is ours: somebody has put it together."""
    trained(tmp_path)
    checkpoint = Checkpoint(tmp_path, "key", 0)
    tensors, progress = checkpoint.load()
    checkpoint.save(FOREIGN[what](tensors), progress)
    said = f"{checkpoint.path} does not hold what this training has saved: delete it to train from the start"
    with pytest.raises(CheckpointError, match=f"^{re.escape(said)}$"):
        trained(tmp_path)


def test_a_checkpoint_with_other_progress_is_named(tmp_path):
    trained(tmp_path)
    checkpoint = Checkpoint(tmp_path, "key", 0)
    checkpoint.save(checkpoint.load()[0], {"step": 3})
    with pytest.raises(CheckpointError, match="does not hold what this training has saved"):
        trained(tmp_path)


def epochs_in(path: Path) -> int:
    with safe_open(path, "pt") as file:
        return len(json.loads(file.metadata()["progress"])["history"])


def test_the_end_is_saved_even_when_no_checkpoint_is_due(tmp_path):
    """Between the last epoch and the outputs, a kill must not cost the training."""
    trained(tmp_path, replace(SETTINGS, validate_every=4), seconds=math.inf)
    assert epochs_in(tmp_path / "resume.safetensors") == SETTINGS.epochs


class Poisoned(LanguageModel):
    """A network that, from a given forward pass in training on, is no longer finite."""

    def __init__(self, healthy: int, where: str) -> None:
        torch.manual_seed(1)
        super().__init__(VOCABULARY, Architecture(4, 8, 1, 0.0))
        self.healthy, self.where = healthy, where

    def forward(self, tokens, state=None):
        logits, state = super().forward(tokens, state)
        if self.training:
            self.healthy -= 1
            if self.healthy < 0 and self.where == "loss":
                logits = logits * math.nan
            elif self.healthy < 0 and self.where == "gradient":
                logits.register_hook(lambda gradient: gradient * math.inf)
            elif self.healthy < 0:
                self.output.bias.data.fill_(math.nan)
        return logits, state


@pytest.mark.parametrize("where", ["loss", "gradient", "weights"])
@pytest.mark.parametrize("healthy", [3 * 5, 3 * 5 + 2, 4 * 5 - 1])
def test_divergence_ends_training_with_what_was_good(where, healthy, tmp_path, caplog):
    """Anywhere in epoch 4, its last update included: best and last weights are of the epochs before."""
    model, three = Poisoned(healthy, where), Poisoned(10**9, where)
    (tmp_path / "three").mkdir()
    outcome = train(model, TRAIN, VALID, SETTINGS, CPU, Checkpoint(tmp_path, "key", 0))
    expected = train(
        three, TRAIN, VALID, replace(SETTINGS, epochs=3), CPU, Checkpoint(tmp_path / "three", "key", 0)
    )
    assert outcome.diverged_in == 4
    assert outcome.history == expected.history
    assert same(outcome.best, expected.best)
    assert same(model.state_dict(), three.state_dict())
    (message,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith("training diverged in epoch 4: the loss is ")
    assert {"loss": "the loss is nan", "gradient": "the gradient is nan", "weights": "no longer finite"}[
        where
    ] in message
    assert message.endswith(f"; the best weights, of epoch {outcome.best_epoch}, are kept")


class Forgetful(LanguageModel):
    """A network that, from a given forward pass in training on, is sure of a token that never comes."""

    def __init__(self, healthy: int) -> None:
        torch.manual_seed(1)
        super().__init__(VOCABULARY + 1, Architecture(4, 8, 1, 0.0))
        self.healthy = healthy

    def forward(self, tokens, state=None):
        logits, state = super().forward(tokens, state)
        self.healthy -= self.training
        sure = torch.zeros(VOCABULARY + 1)
        sure[-1] = 20.0 if self.healthy < 0 else -20.0
        return logits + sure, state


def test_a_network_that_falls_behind_guessing_has_diverged(tmp_path, caplog):
    """Finite all the time, yet nothing that more training would mend."""
    outcome = train(Forgetful(3 * 5), TRAIN, VALID, SETTINGS, CPU, Checkpoint(tmp_path, "key", math.inf))
    assert (outcome.diverged_in, outcome.best_epoch, len(outcome.history)) == (4, 3, 3)
    assert "guessing costs 2.81" in caplog.text


def test_a_bad_start_is_no_divergence(tmp_path):
    """Worse than guessing from the first update on: there was nothing to lose."""
    outcome = train(Forgetful(0), TRAIN, VALID, SETTINGS, CPU, Checkpoint(tmp_path, "key", math.inf))
    assert all(record["loss"] > math.log2(VOCABULARY + 1) for record in outcome.history)


def test_divergence_before_anything_was_validated_says_so(tmp_path):
    with pytest.raises(DivergenceError, match=r"in epoch 1: .*; nothing was validated before: lower"):
        train(Poisoned(2, "loss"), TRAIN, VALID, SETTINGS, CPU, Checkpoint(tmp_path, "key", 0))
    assert list(tmp_path.iterdir()) == []
