import math
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import adversarial_train
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from snakemake.iocontainers import InputFiles, Log, OutputFiles, Params, ResourceList
from stopping import StopError, Stopping, run
from torch import Tensor, nn

from ganlm.corpus import Alphabet, CorpusSettings, load_tokens, split_corpus
from ganlm.files import read_json, spent, write_json
from ganlm.generator import Surroundings
from ganlm.models import seqgan
from ganlm.models.lstm import START, Architecture, LanguageModel, save
from ganlm.training.checkpoint import Checkpoint, CheckpointError, collect
from ganlm.training.divergence import DivergenceError
from ganlm.training.mle import validate
from ganlm.training.optimizers import TensorFlowAdam
from ganlm.training.rollout import rewards, sample
from ganlm.training.seqgan import Players, Settings, Trainer

CPU = torch.device("cpu")
VOCABULARY = 6
ARCHITECTURE = {"embedding": 4, "hidden": 8, "layers": 1, "dropout": 0.5}
SETTINGS = Settings(
    epochs=2,
    length=3,
    batch=4,
    sequences=8,
    pretrain_rounds=2,
    rounds=2,
    passes=2,
    repeats=2,
    learning_rate=0.01,
    discriminator_rate=1e-3,
    clip=5,
    penalty=0.2,
    discriminator_embedding=64,
    discriminator_dropout=0.25,
    held_out=8,
    shuffle=True,
    rollout_lag=0.8,
    sampling_dropout=False,
    loss="mean",
    reward="discriminator",
    baseline=False,
    adam="pytorch",
    precision="float32",
    keep=(1, 2),
    validation_tokens=100,
    validation_window=10,
    seed=1,
)
PUBLISHED = {
    "shuffle": False,
    "rollout_lag": 0,
    "sampling_dropout": True,
    "loss": "sum",
    "adam": "tensorflow",
}
TEXT = np.random.default_rng(1).integers(VOCABULARY, size=300).astype(np.uint8)


def language_model(seed: int = 1, favourite: int | None = None) -> LanguageModel:
    """A small one, which may emit one token only."""
    torch.manual_seed(seed)
    network = LanguageModel(VOCABULARY, Architecture(**ARCHITECTURE))
    if favourite is not None:
        with torch.no_grad():
            network.output.bias[favourite] = 1000
    return network


def trainer(seed: int = 1, train=TEXT, valid=TEXT, favourite: int | None = None, **changes) -> Trainer:
    settings = replace(SETTINGS, **changes)
    players = Players.from_generator(language_model(seed, favourite), VOCABULARY, settings, CPU)
    return Trainer(players, train, valid, settings, CPU)


def draws(seed: int = 9) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def parameters(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def token_log_p(network: LanguageModel, sequence: Tensor) -> list[Tensor]:
    """log p of each token, read one by one from the start token."""
    state, last, found = None, START, []
    for token in sequence.tolist():
        logits, state = network(torch.tensor([[last]]), state)
        found.append(logits[0, 0].log_softmax(dim=0)[token])
        last = token
    return found


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_a_policy_step_is_reinforce_by_hand(loss, baseline):
    """Σ Q(t) ∇ log p(token t), one sequence and one token at a time."""
    it = trainer(loss=loss, baseline=baseline, clip=1e9)
    players, random = it.players, draws()
    before, twin = parameters(players.generator), deepcopy(players.generator).eval()
    samples = sample(twin, SETTINGS.batch, SETTINGS.length, random)
    policy, discriminator = deepcopy(players.policy).eval(), deepcopy(players.discriminator).eval()
    q = rewards(policy, discriminator, samples, SETTINGS.repeats, random)
    advantage = q - q.sum(dim=0) / len(q) if baseline else q
    expected = sum(
        -advantage[row, t] * log_p
        for row in range(len(samples))
        for t, log_p in enumerate(token_log_p(twin, samples[row]))
    )
    expected = expected / (samples.numel() if loss == "mean" else 1)
    expected.backward()
    players.generator_adam = torch.optim.SGD(players.generator.parameters(), lr=1.0)
    record = it.policy_step(draws())
    gradients = {name: p.grad for name, p in twin.named_parameters() if p.grad is not None}
    for name, parameter in players.generator.named_parameters():
        moved = before[name] - parameter.detach()
        torch.testing.assert_close(moved, gradients.get(name, torch.zeros(())).expand_as(moved))
    assert max(g.abs().max() for g in gradients.values()) > 1e-4
    assert record["policy_loss"] == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
    norm = math.sqrt(sum(g.square().sum().item() for g in gradients.values()))
    assert record["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    assert record["reward_mean"] == pytest.approx(q.mean().item(), rel=1e-5)
    assert record["reward_spread"] == pytest.approx(q.numpy().std(axis=0).mean(), rel=1e-4)


def test_the_gradient_is_clipped_to_its_norm():
    it = trainer(loss="sum", clip=1e-3)
    players = it.players
    players.generator_adam = torch.optim.SGD(players.generator.parameters(), lr=1.0)
    before = parameters(players.generator)
    record = it.policy_step(draws())
    moved = {name: tensor - before[name] for name, tensor in parameters(players.generator).items()}
    assert math.sqrt(sum(m.square().sum().item() for m in moved.values())) == pytest.approx(1e-3, rel=0.01)
    assert record["gradient_norm"] > 0.1, "before the clip"


def test_policy_steps_lead_to_what_the_discriminator_likes():
    """The token it takes for real is emitted more and more."""
    it = trainer(loss="mean", baseline=True, repeats=1, batch=64, learning_rate=0.05)

    def likes_token_two(tokens: Tensor) -> Tensor:
        return (tokens == 2).float().mean(dim=1)

    it.players.discriminator.real = likes_token_two
    shares = [it.policy_step(draws(step))["reward_mean"] for step in range(40)]
    assert shares[0] < 0.3
    assert shares[-1] > 0.9


def test_a_constant_reward_ignores_the_discriminator():
    after = []
    for seed in (1, 2):
        it = trainer(reward="constant")
        torch.manual_seed(seed)
        nn.init.normal_(it.players.discriminator.output.weight)
        asked = []
        it.players.discriminator.register_forward_hook(lambda *_: asked.append(1))  # noqa: B023
        record = it.policy_step(draws())
        assert not asked
        assert record["reward_mean"] == 1
        assert record["reward_spread"] == 0
        assert record["gradient_norm"] > 0
        after.append(parameters(it.players.generator))
    assert same(*after)
    other = trainer()
    other.policy_step(draws())
    assert not same(after[0], parameters(other.players.generator))


def test_a_policy_step_leaves_the_discriminator_alone_and_a_round_the_generator():
    it = trainer()
    generator, discriminator = parameters(it.players.generator), parameters(it.players.discriminator)
    it.policy_step(draws())
    assert same(discriminator, parameters(it.players.discriminator))
    assert not same(generator, parameters(it.players.generator))
    generator, policy = parameters(it.players.generator), parameters(it.players.policy)
    it.discriminator_round((0, 0), draws())
    assert same(generator, parameters(it.players.generator))
    assert same(policy, parameters(it.players.policy))
    assert not same(discriminator, parameters(it.players.discriminator))


def test_a_batch_of_one_is_no_divergence():
    record = trainer(batch=1).policy_step(draws())
    assert record["reward_spread"] == 0
    assert all(map(math.isfinite, record.values()))


@pytest.mark.parametrize("lag", [0.8, 0.0])
def test_the_roll_out_policy_follows_the_generator(lag):
    it = trainer(rollout_lag=lag)
    players = it.players
    assert same(parameters(players.policy), parameters(players.generator))
    expected = parameters(players.policy)
    for step in range(3):
        it.policy_step(draws(step))
        new = parameters(players.generator)
        expected = {name: lag * expected[name] + (1 - lag) * new[name] for name in new}
        for name, tensor in parameters(players.policy).items():
            torch.testing.assert_close(tensor, expected[name])
    assert same(parameters(players.policy), parameters(players.generator)) == (lag == 0)


def batches(it: Trainer, training: bool) -> list[Tensor]:
    """What the discriminator reads in a round, in training or in evaluation mode."""
    found = []
    hook = it.players.discriminator.register_forward_pre_hook(
        lambda module, args: found.append(args[0].clone()) if module.training == training else None
    )
    it.discriminator_round((0, 0), draws())
    hook.remove()
    return found


def real_rows(batch: Tensor) -> int:
    """Of a generator that says 5 only, and a text that never does."""
    return int((batch != 5).all(dim=1).sum())


def test_unshuffled_rounds_show_all_real_batches_and_then_all_fake_ones():
    found = batches(
        trainer(favourite=5, train=TEXT % 5, shuffle=False, sequences=12, batch=4, passes=2), training=True
    )
    assert [real_rows(batch) for batch in found] == [4, 4, 4, 0, 0, 0] * 2
    assert all(len(batch) == 4 for batch in found)


def test_shuffled_rounds_mix_and_show_everything_once_per_pass():
    """48 sequences in 6 batches: all of one class has the chance 1e-7."""
    it = trainer(favourite=5, train=TEXT % 5, shuffle=True, sequences=24, batch=8, passes=3)
    found = batches(it, training=True)
    assert all(0 < real_rows(batch) < 8 for batch in found)
    passes = [torch.cat(found[start : start + 6]) for start in (0, 6, 12)]
    assert [real_rows(rows) for rows in passes] == [24] * 3
    assert len({tuple(map(tuple, sorted(rows.tolist()))) for rows in passes}) == 1
    assert not torch.equal(passes[0], passes[1]), "every pass has its own order"


def test_the_paper_s_round_has_936_updates():
    """9,984 and 9,984 in batches of 64 are 156 and 156, three times; here with batches of 2."""
    it = trainer(sequences=156 * 2, batch=2, passes=3, length=2)
    assert len(batches(it, training=True)) == 936


def test_reals_are_windows_of_fixed_phase():
    train, valid = np.tile([0, 1, 2], 50), np.tile([3, 4, 2], 20)
    it = trainer(favourite=5, train=train, valid=valid, shuffle=False)
    assert (batches(it, training=True)[0] == torch.tensor([0, 1, 2])).all()
    held_out, fresh = batches(it, training=False)
    assert (held_out == torch.tensor([3, 4, 2])).all()
    assert (fresh == 5).all()


def test_all_windows_are_seen_and_every_step_has_its_own():
    it = trainer(train=np.arange(30).astype(np.uint8) % 6, sequences=8)
    windows = [it._reals(np.arange(30), 8, (0, step)) for step in range(50)]
    starts = torch.cat(windows)[:, 0]
    assert sorted(set(starts.tolist())) == list(range(0, 30, 3))
    assert len({tuple(w[:, 0].tolist()) for w in windows}) > 40


def test_a_text_shorter_than_a_sequence_gets_a_sentence():
    with pytest.raises(ValueError, match="the validation part has 2 tokens, but a sequence has 3: use a lon"):
        trainer(valid=TEXT[:2])


def test_the_discriminator_s_loss_is_cross_entropy_plus_the_penalty_of_its_output():
    it = trainer(favourite=5, train=TEXT % 5, discriminator_rate=1e-30, penalty=0.7, passes=1)
    discriminator = it.players.discriminator
    found = []

    def remember(module: nn.Module, args: tuple[Tensor], logits: Tensor) -> None:
        if module.training:
            found.append((args[0], logits))

    discriminator.register_forward_hook(remember)
    record = it.discriminator_round((0, 0), draws())
    nats = [
        -logits.log_softmax(dim=1)[row, int((batch[row] != 5).all())].item()
        for batch, logits in found
        for row in range(len(batch))
    ]
    output = discriminator.output
    penalty = 0.7 * (output.weight.square().sum() + output.bias.square().sum()).item() / 2
    assert record["discriminator_loss"] == pytest.approx(np.mean(nats) + penalty, rel=1e-4)


def test_the_discriminator_learns_to_tell_different_sources_apart():
    it = trainer(favourite=5, train=TEXT % 3, valid=TEXT[::-1] % 3, sequences=64, batch=16)
    records = [it.discriminator_round((0, step), draws(step)) for step in range(5)]
    assert records[-1]["accuracy_real"] > 0.95
    assert records[-1]["accuracy_fake"] > 0.95
    assert records[-1]["discriminator_loss"] < records[0]["discriminator_loss"]
    real, fake = torch.from_numpy(TEXT[:30].reshape(10, 3) % 3).long(), torch.full((10, 3), 5)
    discriminator = it.players.discriminator.eval()
    assert discriminator.real(real).min() > 0.5 > discriminator.real(fake).max()


def test_unshuffled_batches_teach_nothing_but_the_last_class():
    """After the all-fake half everything is fake; shuffled, sources that do not differ are near a half."""
    record = {}
    for shuffle in (False, True):
        it = trainer(shuffle=shuffle, sequences=256, batch=16, passes=1)
        with torch.no_grad():
            it.players.generator.output.weight.zero_()
            it.players.generator.output.bias.zero_()
        record[shuffle] = it.discriminator_round((0, 0), draws())
        p = it.players.discriminator.real(torch.from_numpy(TEXT.reshape(100, 3)).long())
        record[shuffle] |= {"mean": p.mean().item()}
    assert record[False]["accuracy_real"] == 0
    assert record[False]["accuracy_fake"] == 1
    assert record[False]["mean"] < 0.05
    assert 0.3 < record[True]["mean"] < 0.7


@pytest.mark.parametrize("switch", [False, True])
def test_dropout_while_sampling_is_a_switch_and_roll_outs_never_have_it(switch):
    it = trainer(sampling_dropout=switch)
    players, modes = it.players, {"generator": [], "policy": []}
    for name, seen in modes.items():
        network = getattr(players, name).train()
        network.dropout.register_forward_hook(lambda module, *_, seen=seen: seen.append(module.training))
    it.policy_step(draws())
    sampled = len(modes["generator"])
    it.discriminator_round((0, 0), draws())
    assert sampled == SETTINGS.length + 1, "the samples token by token, then their gradient"
    assert len(modes["generator"]) > sampled, "the fakes"
    assert set(modes["generator"]) == {switch}
    assert set(modes["policy"]) == {False}


def test_the_discriminator_has_dropout_in_updates_only():
    it = trainer()
    modes = []
    it.players.discriminator.dropout.register_forward_hook(lambda module, *_: modes.append(module.training))
    it.discriminator_round((0, 0), draws())
    updates = SETTINGS.passes * 2 * SETTINGS.sequences // SETTINGS.batch
    assert modes == [True] * updates + [False] * 2
    modes.clear()
    it.policy_step(draws())
    assert set(modes) == {False}


def test_rounds_before_then_one_policy_step_and_its_rounds_per_epoch(tmp_path):
    history = run(tmp_path, trainer()).players.history
    kinds = ["policy" if "policy_loss" in record else "discriminator" for record in history]
    assert kinds == ["discriminator"] * 2 + ["policy", "discriminator", "discriminator"] * 2
    assert [record["epoch"] for record in history] == [0, 0, 1, 1, 1, 2, 2, 2]
    assert [record["step"] for record in history] == list(range(8))
    assert replace(SETTINGS, epochs=200, pretrain_rounds=50, rounds=5).steps == 50 + 200 * 6


def test_training_may_start_without_rounds_before(tmp_path):
    history = run(tmp_path, trainer(pretrain_rounds=0)).players.history
    assert [record["epoch"] for record in history] == [1, 1, 1, 2, 2, 2]
    assert "policy_loss" in history[0]


def test_a_control_needs_no_discriminator(tmp_path):
    """Its epochs meet the random numbers that those of other arms meet."""
    control = run(tmp_path / "control", trainer(pretrain_rounds=0, rounds=0, reward="constant"))
    assert [record["epoch"] for record in control.players.history] == [1, 2]
    whole = run(tmp_path / "whole", trainer(reward="constant"))
    assert same(parameters(whole.players.generator), parameters(control.players.generator))


@pytest.mark.parametrize(("adam", "kind"), [("pytorch", torch.optim.Adam), ("tensorflow", TensorFlowAdam)])
def test_only_the_generator_s_adam_is_a_switch(adam, kind):
    players = trainer(adam=adam).players
    assert type(players.generator_adam) is kind
    assert type(players.discriminator_adam) is torch.optim.Adam


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_precision_is_that_of_all_products(precision):
    """Sampling, roll-outs and updates; but the discriminator's verdict is in full precision."""
    it, found = trainer(precision=precision), {}
    players = it.players
    layers = {
        "generator": players.generator.output,
        "policy": players.policy.output,
        "highway": players.discriminator.highway,
        "verdict": players.discriminator.output,
    }
    for name, layer in layers.items():
        layer.register_forward_hook(
            lambda *seen, name=name: found.setdefault(name, set()).add(seen[-1].dtype)
        )
    it.policy_step(draws())
    it.discriminator_round((0, 0), draws())
    assert found.pop("verdict") == {torch.float32}
    assert found == {name: {getattr(torch, precision)} for name in ("generator", "policy", "highway")}


def test_the_generators_of_the_wanted_epochs_are_kept(tmp_path):
    """What is kept after epoch k is what training ends with that has k epochs only."""
    long = run(tmp_path / "long", trainer(epochs=4, keep=(3, 1))).players
    assert {name.split("/")[0] for name in long.kept} == {"epoch-1", "epoch-3"}
    for epoch in (1, 3):
        short = run(tmp_path / str(epoch), trainer(epochs=epoch, keep=(epoch,))).players
        assert same(long.weights(epoch), short.generator.state_dict())
    assert not same(long.weights(1), long.weights(3))
    assert not same(long.weights(3), long.generator.state_dict())


def test_epoch_ten_is_not_mistaken_for_epoch_one():
    players = trainer().players
    players.keep(1)
    with torch.no_grad():
        players.generator.output.bias.add_(1)
    players.keep(10)
    assert players.weights(1).keys() == players.generator.state_dict().keys()
    difference = players.weights(10)["output.bias"] - players.weights(1)["output.bias"]
    torch.testing.assert_close(difference, torch.ones(VOCABULARY))


@pytest.mark.parametrize("changes", [{}, PUBLISHED | {"precision": "bfloat16"}])
def test_stopped_anywhere_training_goes_on_bit_by_bit(changes, tmp_path):
    """Both players, the roll-out policy, both optimizers, the kept epochs and the record."""
    whole = run(tmp_path / "whole", trainer(**changes)).players
    expected = collect(**whole.parts()) | whole.kept
    assert {name.split("/")[0] for name in expected} == {*whole.parts(), "epoch-1", "epoch-2"}
    for stop in range(1, 9):
        folder = tmp_path / str(stop)
        folder.mkdir()
        with pytest.raises(StopError):
            trainer(**changes).run(Stopping(folder, stop))
        found = run(folder, trainer(seed=77, **changes)).players
        assert same(collect(**found.parts()) | found.kept, expected), stop
        assert found.history == whole.history


@pytest.mark.parametrize(
    "name", ["policy/output.bias", "generator_adam/0/exp_avg", "epoch-1/output.bias", None]
)
def test_a_checkpoint_with_other_tensors_is_named(name, tmp_path):
    with pytest.raises(StopError):
        trainer().run(Stopping(tmp_path, 6))
    checkpoint = Checkpoint(tmp_path, "key", 0)
    tensors, progress = checkpoint.load()
    assert name is None or name in tensors
    checkpoint.save(tensors | {name: torch.zeros(2)} if name else {}, progress)
    with pytest.raises(
        CheckpointError, match="safetensors does not hold what this training has saved: delete"
    ):
        run(tmp_path, trainer())


def test_saving_changes_nothing_and_seeds_change_everything(tmp_path):
    often = run(tmp_path / "a", trainer(), seconds=0).players
    never = run(tmp_path / "b", trainer()).players
    other = run(tmp_path / "c", trainer()).players
    other_seed = run(tmp_path / "d", replace_seed(trainer(), 2)).players
    assert same(often.generator.state_dict(), never.generator.state_dict())
    assert same(often.discriminator.state_dict(), other.discriminator.state_dict())
    assert not same(often.generator.state_dict(), other_seed.generator.state_dict())
    assert often.history != other_seed.history


def replace_seed(it: Trainer, seed: int) -> Trainer:
    it.settings = replace(it.settings, seed=seed)
    return it


@pytest.mark.parametrize(
    ("sick", "rounds", "field", "where"),
    [
        ("generator", 2, "validation_bpc", (1, 0)),
        ("generator", 0, "policy_loss", (0, 1)),
        ("discriminator", 2, "discriminator_loss", (0, 0)),
    ],
)
def test_divergence_stops_with_a_sentence(sick, rounds, field, where, tmp_path):
    it = trainer(pretrain_rounds=rounds)
    with torch.no_grad():
        getattr(it.players, sick).output.bias.fill_(torch.nan)
    with pytest.raises(DivergenceError) as caught:
        run(tmp_path, it)
    assert str(caught.value) == (
        f"{field} became nan in step {where[0]} of adversarial_train, epoch {where[1]}: lower the learning "
        "rates or use float32; nothing is kept"
    )


def test_weights_that_the_last_update_spoilt_are_not_saved(tmp_path):
    """The losses of that step are those of the updates before, and an accuracy of NaNs is 0."""
    it = trainer()
    update, done = it._discriminator_update, []

    def spoiling(sequences: Tensor, labels: Tensor) -> Tensor:
        loss = update(sequences, labels)
        done.append(loss)
        if len(done) == 16:  # the last of the second step
            it.players.discriminator.output.bias.data.fill_(torch.nan)
        return loss

    it._discriminator_update = spoiling
    checkpoint = Checkpoint(tmp_path, "key", 0)
    with pytest.raises(DivergenceError) as caught:
        it.run(checkpoint)
    assert str(caught.value) == (
        "discriminator/output.bias is no longer finite after step 1 of adversarial_train, epoch 0: lower the "
        f"learning rates or use float32; {checkpoint.path} keeps 1 steps"
    )
    tensors, progress = checkpoint.load()
    assert progress["step"] == 1
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_divergence_names_the_last_good_checkpoint(tmp_path):
    with pytest.raises(StopError):
        trainer().run(Stopping(tmp_path, 3))
    it = trainer(discriminator_rate=1e38)
    checkpoint = Checkpoint(tmp_path, "key", math.inf)
    with pytest.raises(DivergenceError, match="in step 3 of adversarial_train, epoch 1: ") as caught:
        it.run(checkpoint)
    assert str(caught.value).endswith(f"{checkpoint.path} keeps 3 steps")
    tensors, progress = checkpoint.load()
    assert progress["step"] == 3
    assert all(tensor.isfinite().all() for tensor in tensors.values())


WORDS = b"a rose is a rose is a rose " * 40


class Stage:
    """The stage itself, on a small text."""

    def __init__(self, folder: Path, **changes) -> None:
        self.folder = folder
        self.training = asdict(SETTINGS) | {"keep": [2, 1], "epochs": 3, "reward": "constant"} | changes
        paths = {part: folder / f"{part}.npy" for part in ("train", "valid", "test")}
        write_json(folder / "corpus.json", split_corpus([WORDS], CorpusSettings(), paths).to_json())
        self.start(seed=1)

    def start(self, seed: int) -> None:
        torch.manual_seed(seed)
        save(LanguageModel(27, Architecture(**ARCHITECTURE)), self.folder / "start.safetensors")

    @property
    def parameters(self) -> dict:
        return {"kind": "seqgan", "start": "lm", "architecture": ARCHITECTURE, "training": self.training}

    def run(self, into: str, history: str = "history.csv") -> Path:
        results = self.folder / into
        inputs = {part: str(self.folder / f"{part}.npy") for part in ("train", "valid")}
        inputs |= {
            "corpus": str(self.folder / "corpus.json"),
            "start": str(self.folder / "start.safetensors"),
        }
        names = {"best": "model", "last": "last", "kept": "kept"}
        outputs = {key: str(results / f"{name}.safetensors") for key, name in names.items()}
        outputs |= {"sidecar": str(results / "model.json"), "history": str(results / history)}
        outputs["rates"] = str(self.folder / "rates.csv")
        adversarial_train.main(
            SimpleNamespace(
                input=InputFiles(fromdict=inputs),
                output=OutputFiles(fromdict=outputs),
                params=Params(fromdict={"model": self.parameters, "code": {}, "torch": torch.__version__}),
                wildcards=SimpleNamespace(model="rose"),
                log=Log([str(self.folder / "stage.log")]),
                threads=1,
                resources=ResourceList(fromdict={"checkpoint_seconds": 0, "device": "cpu"}),
            )
        )
        return results


def test_the_stage_writes_best_last_and_kept_generators(tmp_path):
    stage = Stage(tmp_path)
    results = stage.run("results")
    kept, best, last = (load_file(results / f"{name}.safetensors") for name in ("kept", "model", "last"))
    of_epoch = {
        epoch: {
            name.removeprefix(f"epoch-{epoch}/"): t for name, t in kept.items() if f"epoch-{epoch}/" in name
        }
        for epoch in (1, 2)
    }
    sidecar = read_json(results / "model.json")
    valid = load_tokens(tmp_path / "valid.npy")
    network = LanguageModel(27, Architecture(**ARCHITECTURE))
    for epoch, weights in of_epoch.items():
        network.load_state_dict(weights)
        assert sidecar["validation_bpc"][str(epoch)] == validate(network, valid, SETTINGS, CPU)
    assert sidecar["best_epoch"] == min((1, 2), key=lambda epoch: sidecar["validation_bpc"][str(epoch)])
    assert same(best, of_epoch[sidecar["best_epoch"]])
    assert not any(same(last, weights) for weights in of_epoch.values()), "epoch 3 is the last"
    history = pd.read_csv(results / "history.csv")
    assert history["epoch"].tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    validated = history.dropna(subset="validation_bpc").set_index("epoch")["validation_bpc"]
    assert validated.index.tolist() == [0, 1, 2, 3]
    network.load_state_dict(load_file(tmp_path / "start.safetensors"))
    assert validated[0] == validate(network, valid, SETTINGS, CPU)
    assert {str(epoch): validated[epoch] for epoch in (2, 1)} == sidecar["validation_bpc"]
    rates = pd.read_csv(tmp_path / "rates.csv")
    assert rates["epoch"].tolist() == history["epoch"].tolist()
    read = 2 * 2 * 8 * 3
    assert rates["tokens"].tolist() == [read, read, *[4 * 3, read, read] * 3], "passes x classes x sequences"
    assert set(spent(tmp_path)) == {results / "resume.safetensors"}


def test_a_checkpoint_from_another_start_is_not_resumed(tmp_path):
    """The language model was trained anew meanwhile: the old adversarial training is worth nothing."""
    stage = Stage(tmp_path)
    with pytest.raises(SystemExit):
        stage.run("results", history="no/such/folder/history.csv")
    assert (tmp_path / "results/resume.safetensors").exists()
    stage.start(seed=2)
    resumed, fresh = stage.run("results"), stage.run("fresh")
    assert same(load_file(resumed / "last.safetensors"), load_file(fresh / "last.safetensors"))


def test_a_checkpoint_of_another_precision_is_not_resumed(tmp_path, monkeypatch):
    """`auto` is settled where a job runs, which may be another kind of node when it is resubmitted."""
    stage = Stage(tmp_path, precision="auto")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"bf16": True})
    with pytest.raises(SystemExit):
        stage.run("results", history="no/such/folder/history.csv")
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    resumed, fresh = stage.run("results"), stage.run("fresh")
    assert read_json(resumed / "model.json")["precision"] == "float32"
    assert same(load_file(resumed / "last.safetensors"), load_file(fresh / "last.safetensors"))
    assert "belongs to other settings, code, data or hardware" in (tmp_path / "stage.log").read_text()


@pytest.mark.parametrize("epoch", [None, 1, 10])
def test_a_saved_generator_is_loaded_by_epoch_or_as_the_best(epoch, tmp_path):
    players = trainer().players
    for number in (1, 10):
        with torch.no_grad():
            players.generator.output.bias.add_(number * torch.arange(VOCABULARY))
        players.keep(number)
    path = tmp_path / "weights.safetensors"
    save_file(players.kept if epoch else players.weights(1), path)
    block = {"kind": "seqgan", "architecture": ARCHITECTURE} | ({"epoch": epoch} if epoch else {})
    model = seqgan.load(block, [str(path)], Surroundings(Alphabet(tuple("abcdef"))))
    assert same(dict(model.network.state_dict()), players.weights(epoch or 1))
    assert not model.network.training


@pytest.mark.parametrize("block", [{"epoch": 2}, {}])
def test_a_file_without_the_weights_gets_a_sentence(block, tmp_path):
    players = trainer().players
    players.keep(1)
    path = tmp_path / "kept.safetensors"
    save_file(players.kept, path)
    for damage in (None, b"junk"):
        if damage:
            path.write_bytes(damage)
        with pytest.raises(
            ValueError, match=r"kept\.safetensors holds no weights .*: delete it to train aga"
        ):
            seqgan.load(
                {"architecture": ARCHITECTURE} | block,
                [str(path)],
                Surroundings(Alphabet(tuple("abcdef"))),
            )
