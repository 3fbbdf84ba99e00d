import json
import math
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import train_recurrent_gan
from safetensors import safe_open
from safetensors.torch import load_file
from scipy.stats import chisquare
from snakemake.iocontainers import InputFiles, Log, OutputFiles, Params, ResourceList
from stopping import StopError, Stopping, run
from torch import Tensor, nn

from ganlm.corpus import CorpusSettings, load_tokens, split_corpus
from ganlm.files import read_json, spent, write_json
from ganlm.models.recurrent_gan import Architecture, Critic, Generator
from ganlm.training.checkpoint import Checkpoint, collect
from ganlm.training.divergence import DivergenceError
from ganlm.training.teacher_helping import draw_items, fake_items, real_items
from ganlm.training.wgan import Players, Settings, Trainer, gradient_penalty, validate

CPU = torch.device("cpu")
VOCABULARY = 6
ARCHITECTURE = Architecture(hidden=8, layers=1, noise_std=2.0)
SETTINGS = Settings(
    lengths=(1, 2, 3),
    iterations=2,
    critic_updates=2,
    generator_updates=3,
    batch=4,
    windows=None,
    learning_rate=1e-3,
    critic_rate=1e-3,
    betas=(0.5, 0.9),
    penalty=10,
    optimizer_restart=True,
    skip_first_real=False,
    precision="float32",
    log_every=1,
    keep=(1, 2, 3),
    validation_tokens=100,
    validation_window=7,
    validation_draws=5,
    seed=1,
)
TEXT = np.random.default_rng(1).integers(VOCABULARY, size=300).astype(np.uint8)


def trainer(seed: int = 1, train: np.ndarray = TEXT, valid: np.ndarray = TEXT, **changes) -> Trainer:
    settings = replace(SETTINGS, **changes)
    torch.manual_seed(seed)
    networks = Generator(VOCABULARY, ARCHITECTURE), Critic(VOCABULARY, ARCHITECTURE)
    return Trainer(Players.at_start(*networks, settings, CPU), train, valid, settings, CPU)


def draws(seed: int = 9) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def parameters(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


A, B, C, PAD = [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]


def test_items_by_hand():
    """Two windows of length 3, abc and cab: six items, the shortest first, the windows in turn."""
    windows = torch.tensor([[0, 1, 2], [2, 0, 1]])
    soft = torch.rand(2, 3, 3)
    (p, q, r), (s, t, u) = soft.tolist()
    real = [[PAD, PAD, A], [PAD, PAD, C], [PAD, A, B], [PAD, C, A], [A, B, C], [C, A, B]]
    fake = [[PAD, PAD, p], [PAD, PAD, s], [PAD, A, q], [PAD, C, t], [A, B, r], [C, A, u]]
    everything = torch.arange(6)
    assert real_items(windows, everything, 3).tolist() == real
    assert fake_items(windows, soft, everything).tolist() == fake
    some = torch.tensor([5, 0, 5])
    assert real_items(windows, some, 3).tolist() == [real[5], real[0], real[5]]
    assert fake_items(windows, soft, some).tolist() == [fake[5], fake[0], fake[5]]


@pytest.mark.parametrize("first", [0, 1])
def test_all_items_are_drawn_alike_but_those_that_are_skipped(first):
    windows = torch.zeros(4, 3, dtype=torch.long)
    counts = np.bincount(draw_items(12_000, windows, first, draws()).numpy(), minlength=12)
    assert len(counts) == 12
    assert chisquare(counts[first:]).pvalue > 1e-3
    assert (counts[:first] == 0).all()


@pytest.mark.parametrize("skip", [False, True])
def test_the_first_real_is_skipped_on_demand_and_the_first_fake_never(skip):
    """Windows of length 1 have as many items as rows, and the first row has a token of its own."""
    it = trainer(skip_first_real=skip, batch=64)
    windows, seen = torch.zeros(64, 1, dtype=torch.long), {"real": 0.0, "fake": 0.0}
    windows[0] = 5
    noise = it.players.generator.noise

    def loud_first(rows: int, random: torch.Generator) -> Tensor:
        return torch.cat([torch.full((1, 8), 1000.0), 0 * noise(rows, random)[1:]])

    it.players.generator.noise = loud_first
    quiet = it.players.generator(windows, 0 * noise(64, draws())).softmax(dim=-1)[-1, 0]

    def look(_: nn.Module, args: tuple[Tensor]) -> None:
        if len(args[0]) == 128:
            fake, real = args[0].chunk(2)
            seen["real"] += real[:, 0, 5].sum().item()
            seen["fake"] += ((fake[:, 0] - quiet).abs().amax(dim=1) > 1e-4).sum().item()

    it.players.critic.register_forward_pre_hook(look)
    for seed in range(10):
        it.critic_update(windows, draws(seed))
    assert seen["fake"] > 0
    assert (seen["real"] > 0) == (not skip)


def numerical(function, tensor: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences by every element of a tensor, in place."""
    found = torch.empty_like(tensor)
    flat, slopes = tensor.detach().view(-1), found.view(-1)
    for index in range(flat.numel()):
        values = []
        for sign in (1, -1):
            flat[index] += sign * step
            values.append(function())
            flat[index] -= sign * step
        slopes[index] = (values[0] - values[1]) / (2 * step)
    return found


def test_the_penalty_and_its_derivative_are_those_of_finite_differences():
    """By the definition: slopes of D by every input, their norm over time and vocabulary per item."""
    torch.manual_seed(1)
    critic = Critic(3, Architecture(2)).double()
    for parameter in critic.parameters():
        nn.init.normal_(parameter)
    points = torch.rand(4, 3, 3, dtype=torch.double)
    slopes = numerical(lambda: critic(points).sum().item(), points)
    expected = ((slopes.square().sum(dim=(1, 2)).sqrt() - 1) ** 2).mean()
    penalty = gradient_penalty(critic, points)
    torch.testing.assert_close(penalty.detach(), expected, rtol=1e-6, atol=0)
    penalty.backward()
    for name, parameter in critic.named_parameters():
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        wanted = numerical(lambda: gradient_penalty(critic, points).item(), parameter)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7, msg=name)
    assert points.grad is None


def slow_fakes(generator: Generator, windows: Tensor, random: torch.Generator) -> list[Tensor]:
    """Item by item, from the same random numbers: the noise, then which items."""
    noise = generator.noise(len(windows), random)
    soft = generator(windows, noise).softmax(dim=-1)
    rows, length = windows.shape
    items = []
    for k in torch.randint(rows * length, (rows,), generator=random).tolist():
        end, row = divmod(k, rows)
        before = nn.functional.one_hot(windows[row, :end], VOCABULARY).float()
        items.append(torch.cat([torch.zeros(length - end - 1, VOCABULARY), before, soft[row, end : end + 1]]))
    return items


def moved_by_gradient(it: Trainer, player: str, update) -> tuple[dict, dict[str, Tensor]]:
    """What an update reports, and the gradient it follows: with plain SGD and rate 1 the step itself."""
    network = getattr(it.players, player)
    setattr(it.players, f"{player}_adam", torch.optim.SGD(network.parameters(), lr=1.0))
    before = parameters(network)
    record = update()
    return record, {name: before[name] - tensor for name, tensor in parameters(network).items()}


def assert_gradient(found: dict[str, Tensor], twin: nn.Module, norm: Tensor) -> None:
    expected = {name: p.grad for name, p in twin.named_parameters() if p.grad is not None}
    for name, gradient in found.items():
        wanted = expected.get(name, torch.zeros_like(gradient))
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-6)
    squares = sum(gradient.square().sum().item() for gradient in expected.values())
    assert norm.item() == pytest.approx(math.sqrt(squares), rel=1e-4)
    assert squares > 0


def test_a_critic_update_is_the_published_loss_by_hand():
    it = trainer()
    windows = torch.from_numpy(TEXT[:12].astype(np.int64)).view(4, 3)
    critic, random = deepcopy(it.players.critic), draws()
    with torch.no_grad():
        fakes = slow_fakes(it.players.generator, windows, random)
    reals = []
    for k in torch.randint(12, (4,), generator=random).tolist():
        end, row = divmod(k, 4)
        tokens = nn.functional.one_hot(windows[row, : end + 1], VOCABULARY).float()
        reals.append(torch.cat([torch.zeros(2 - end, VOCABULARY), tokens]))
    shares = torch.rand(4, 1, 1, generator=random)
    distance, penalty = torch.zeros(()), torch.zeros(())
    for fake, real, share in zip(fakes, reals, shares, strict=True):
        distance = distance + (critic(real[None]) - critic(fake[None])).sum() / 4
        between = (real + share * (fake - real))[None].requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = penalty + (slope.square().sum().sqrt() - 1) ** 2 / 4
    loss = -distance + 10 * penalty
    loss.backward()
    generator = parameters(it.players.generator)
    record, moved = moved_by_gradient(it, "critic", lambda: it.critic_update(windows, draws()))
    assert record["critic_loss"].item() == pytest.approx(loss.item(), rel=1e-4)
    assert record["wasserstein"].item() == pytest.approx(distance.item(), abs=1e-6)
    assert record["gradient_penalty"].item() == pytest.approx(penalty.item(), rel=1e-4)
    assert_gradient(moved, critic, record["critic_gradient_norm"])
    assert same(generator, parameters(it.players.generator))


def test_a_generator_update_is_the_published_loss_by_hand():
    it = trainer()
    windows = torch.from_numpy(TEXT[:12].astype(np.int64)).view(4, 3)
    generator, critic = deepcopy(it.players.generator), parameters(it.players.critic)
    loss = -sum(it.players.critic(item[None]).sum() / 4 for item in slow_fakes(generator, windows, draws()))
    loss.backward()
    it.players.critic.zero_grad()
    record, moved = moved_by_gradient(it, "generator", lambda: it.generator_update(windows, draws()))
    assert record["generator_loss"].item() == pytest.approx(loss.item(), rel=1e-5)
    assert_gradient(moved, generator, record["generator_gradient_norm"])
    assert same(critic, parameters(it.players.critic))
    assert all(parameter.grad is None for parameter in it.players.critic.parameters())


def test_low_precision_gives_nearly_the_same_gradients():
    windows = torch.from_numpy(TEXT[:252].astype(np.int64)).view(36, 7)
    moved = {}
    for precision in ("float32", "bfloat16"):
        it = trainer(precision=precision, batch=36)
        _, critic = moved_by_gradient(it, "critic", lambda it=it: it.critic_update(windows, draws()))
        _, generator = moved_by_gradient(it, "generator", lambda it=it: it.generator_update(windows, draws()))
        moved[precision] = critic | generator
    for name, exact in moved["float32"].items():
        assert (moved["bfloat16"][name] - exact).norm() <= 0.03 * exact.norm(), name
    assert not same(*moved.values())


def test_the_published_schedule_has_28_million_updates():
    published = replace(
        SETTINGS, lengths=tuple(range(1, 32)), iterations=15_000, critic_updates=10, generator_updates=50
    )
    assert published.steps == 465_000
    assert published.updates == 27_900_000
    places = [published.place(step) for step in (0, 14_999, 15_000, 464_999)]
    assert places == [(1, 1), (1, 15_000), (2, 1), (31, 15_000)]


@pytest.mark.parametrize(
    ("windows", "starts"), [(None, [0, 3, 6, 9, 12, 15]), (4, [0, 3, 6, 9]), (9, [0, 3, 6, 9, 12, 15])]
)
def test_windows_have_a_fixed_phase_and_every_iteration_has_its_own(windows, starts):
    it = trainer(train=np.arange(20).astype(np.uint8), batch=8, windows=windows)
    found = [it._windows(step, 3) for step in range(20)]
    assert found[0].shape == (5, 8, 3)
    together = torch.stack(found).view(-1, 3)
    assert (together == together[:, :1] + torch.arange(3)).all()
    assert sorted(set(together[:, 0].tolist())) == starts
    assert len({tuple(windows.flatten().tolist()) for windows in found}) == 20


def test_a_text_shorter_than_a_window_gets_a_sentence():
    with pytest.raises(ValueError, match="the train part has 2 tokens, but the last stage reads 3 at once"):
        trainer(train=TEXT[:2])
    with pytest.raises(
        ValueError, match="the validation part has 6 tokens, but a window has 7: use a longer"
    ):
        trainer(valid=TEXT[:6])


def test_lengths_in_turn_each_with_its_updates(tmp_path):
    it, read = trainer(lengths=(3, 1), keep=(1,)), []
    it.players.critic.register_forward_pre_hook(lambda _, args: read.append(args[0].shape[:2]))
    history = run(tmp_path, it).players.history
    one = [(8, 3), (4, 3)] * 2 + [(4, 3)] * 3
    assert read == one * 2 + [(rows, 1) for rows, _ in one] * 2
    assert [(record["step"], record["epoch"]) for record in history] == [(0, 3), (1, 3), (2, 1), (3, 1)]
    assert {name.split("/")[0] for name in it.players.kept} == {"epoch-1"}


@pytest.mark.parametrize(("restart", "steps"), [(True, 2), (False, 6)])
def test_optimizers_start_anew_with_each_stage_or_not(restart, steps, tmp_path):
    players = run(tmp_path, trainer(optimizer_restart=restart)).players
    found = [
        next(iter(adam.state.values()))["step"] for adam in (players.critic_adam, players.generator_adam)
    ]
    assert found == [2 * steps, 3 * steps]
    assert players.generator_adam.param_groups[0]["betas"] == (0.5, 0.9)


@pytest.mark.parametrize(("every", "logged"), [(1, [0, 1, 2, 3, 4]), (2, [1, 3, 4]), (3, [2, 4]), (9, [4])])
def test_the_record_has_every_so_many_iterations_and_the_end_of_each_stage(every, logged, tmp_path):
    it = run(tmp_path, trainer(lengths=(1, 2), iterations=5, log_every=every, keep=(2,)))
    found = [record["step"] for record in it.players.history]
    assert found == logged + [iteration + 5 for iteration in logged]


def test_the_generators_of_the_wanted_stages_are_kept(tmp_path):
    """What is kept after a stage is what a curriculum ends with that has no more stages."""
    long = run(tmp_path / "long", trainer(lengths=(1, 2, 3, 4), keep=(3, 1))).players
    assert {name.split("/")[0] for name in long.kept} == {"epoch-1", "epoch-3"}
    for length in (1, 3):
        lengths = tuple(range(1, length + 1))
        short = run(tmp_path / str(length), trainer(lengths=lengths, keep=(length,))).players
        assert same(long.weights(length), short.generator.state_dict())
    assert not same(long.weights(1), long.weights(3))
    assert not same(long.weights(3), long.generator.state_dict())


def test_length_ten_is_not_mistaken_for_length_one():
    players = trainer().players
    players.keep(1)
    with torch.no_grad():
        players.generator.start.add_(1)
    players.keep(10)
    assert players.weights(1).keys() == players.generator.state_dict().keys()
    torch.testing.assert_close(players.weights(10)["start"] - players.weights(1)["start"], torch.ones(8))


@pytest.mark.parametrize(
    "changes", [{}, {"optimizer_restart": False, "precision": "bfloat16", "skip_first_real": True}]
)
def test_stopped_anywhere_training_goes_on_bit_by_bit(changes, tmp_path):
    """Both players, both optimizers, the kept stages and the record; at the border of stages too."""
    whole = run(tmp_path / "whole", trainer(**changes)).players
    expected = collect(**whole.parts()) | whole.kept
    assert {name.split("/")[0] for name in expected} == {*whole.parts(), "epoch-1", "epoch-2", "epoch-3"}
    for stop in range(1, 7):
        folder = tmp_path / str(stop)
        folder.mkdir()
        with pytest.raises(StopError):
            trainer(**changes).run(Stopping(folder, stop))
        found = run(folder, trainer(seed=77, **changes)).players
        assert same(collect(**found.parts()) | found.kept, expected), stop
        assert found.history == whole.history


def test_saving_changes_nothing_and_seeds_change_everything(tmp_path):
    often = run(tmp_path / "a", trainer(), seconds=0).players
    never = run(tmp_path / "b", trainer()).players
    other = run(tmp_path / "c", trainer(log_every=2)).players
    it = trainer()
    it.settings = replace(it.settings, seed=2)
    other_seed = run(tmp_path / "d", it).players
    assert same(often.generator.state_dict(), never.generator.state_dict())
    assert same(often.critic.state_dict(), other.critic.state_dict())
    assert not same(often.generator.state_dict(), other_seed.generator.state_dict())
    assert often.history != other_seed.history


@pytest.mark.parametrize("sick", ["generator", "critic"])
def test_divergence_stops_with_a_sentence(sick, tmp_path):
    it = trainer()
    with torch.no_grad():
        getattr(it.players, sick).layers[0].bias.fill_(torch.nan)
    with pytest.raises(DivergenceError) as caught:
        run(tmp_path, it)
    assert str(caught.value) == (
        "critic_loss became nan in step 0 of train_recurrent_gan, epoch 1: lower the learning rates or use "
        "float32; nothing is kept"
    )


def test_divergence_names_the_last_good_checkpoint(tmp_path):
    with pytest.raises(StopError):
        trainer().run(Stopping(tmp_path, 3))
    checkpoint = Checkpoint(tmp_path, "key", math.inf)
    with pytest.raises(DivergenceError, match="in step 3 of train_recurrent_gan, epoch 2: ") as caught:
        trainer(critic_rate=1e38).run(checkpoint)
    assert str(caught.value).endswith(f"{checkpoint.path} keeps 3 iterations")
    tensors, progress = checkpoint.load()
    assert progress["step"] == 3
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_validation_is_the_mean_softmax_over_draws_window_by_window():
    """More windows than fit at once; the last, incomplete one is left out."""
    torch.manual_seed(3)
    generator = Generator(VOCABULARY, Architecture(8, noise_std=1.0))
    with torch.no_grad():
        generator.output.weight.mul_(30)
    settings = replace(SETTINGS, validation_tokens=35, validation_draws=2048, validation_window=7)
    bits = validate(generator, TEXT, settings, CPU)
    windows = torch.from_numpy(TEXT[:35].astype(np.int64)).view(5, 7)
    exact = []
    for window in windows:
        logits = generator(window.repeat(20_000, 1), generator.noise(20_000, draws())).detach()
        p = logits.double().softmax(dim=-1).mean(dim=0)
        exact += [-math.log2(p[t, token]) for t, token in enumerate(window.tolist())]
    assert bits == pytest.approx(np.mean(exact), abs=0.05)
    assert validate(generator, TEXT[:34], settings, CPU) != bits
    assert validate(generator, TEXT, settings, CPU) == bits


def test_a_token_that_no_draw_expects_costs_as_much_as_published():
    generator = Generator(VOCABULARY, ARCHITECTURE)
    with torch.no_grad():
        generator.output.bias[0] = 1000
    bits = validate(generator, np.ones(14, np.uint8), SETTINGS, CPU)
    assert bits == pytest.approx(-math.log2(1e-20))
    assert validate(generator, np.zeros(14, np.uint8), SETTINGS, CPU) == 0


def test_training_learns_what_the_text_is_made_of(tmp_path):
    """Two of six tokens, equally often: one bit is all there is to say."""
    text = np.random.default_rng(2).integers(2, size=2000).astype(np.uint8)
    schedule = {
        "lengths": (1,),
        "keep": (1,),
        "iterations": 40,
        "critic_updates": 10,
        "generator_updates": 10,
    }
    it = trainer(train=text, batch=32, learning_rate=0.003, critic_rate=0.01, **schedule)
    settings = replace(it.settings, validation_tokens=200, validation_window=1, validation_draws=64)
    before = validate(it.players.generator, text, settings, CPU)
    history = run(tmp_path, it).players.history
    after = validate(it.players.generator, text, settings, CPU)
    assert before > 2.5
    assert 0.98 < after < 1.3
    assert abs(history[-1]["wasserstein"]) < 0.2 < max(record["wasserstein"] for record in history)


WORDS = b"a rose is a rose is a rose " * 40


def stage(folder: Path, into: str, **changes) -> Path:
    """The stage itself, on a small text."""
    paths = {part: folder / f"{part}.npy" for part in ("train", "valid", "test")}
    write_json(folder / "corpus.json", split_corpus([WORDS], CorpusSettings(), paths).to_json())
    training = asdict(SETTINGS) | {"lengths": [1, 2, 3], "keep": [2, 1]} | changes
    block = {"kind": "recurrent_gan", "training": training} | asdict(ARCHITECTURE)
    results = folder / into
    inputs = {part: str(folder / f"{part}.npy") for part in ("train", "valid")}
    names = {"best": "model", "last": "last", "kept": "kept"}
    outputs = {key: str(results / f"{name}.safetensors") for key, name in names.items()}
    outputs |= {"sidecar": str(results / "model.json"), "history": str(results / "history.csv")}
    outputs["rates"] = str(folder / "rates.csv")
    train_recurrent_gan.main(
        SimpleNamespace(
            input=InputFiles(fromdict=inputs | {"corpus": str(folder / "corpus.json")}),
            output=OutputFiles(fromdict=outputs),
            params=Params(fromdict={"model": block, "code": {}, "torch": torch.__version__}),
            wildcards=SimpleNamespace(model="rose"),
            log=Log([str(folder / "stage.log")]),
            threads=1,
            resources=ResourceList(fromdict={"checkpoint_seconds": 0, "device": "cpu"}),
        )
    )
    return results


def test_the_stage_writes_best_last_and_kept_generators(tmp_path):
    results = stage(tmp_path, "results")
    kept, best, last = (load_file(results / f"{name}.safetensors") for name in ("kept", "model", "last"))
    of_length = {
        length: {
            name.removeprefix(f"epoch-{length}/"): t
            for name, t in kept.items()
            if name.startswith(f"epoch-{length}/")
        }
        for length in (1, 2)
    }
    assert len(kept) == 2 * len(best)
    sidecar = read_json(results / "model.json")
    valid = load_tokens(tmp_path / "valid.npy")
    network = Generator(27, ARCHITECTURE)
    for length, weights in of_length.items():
        network.load_state_dict(weights)
        assert sidecar["validation_bpc"][str(length)] == validate(network, valid, SETTINGS, CPU)
    assert sidecar["best_length"] == min((1, 2), key=lambda n: sidecar["validation_bpc"][str(n)])
    assert same(best, of_length[sidecar["best_length"]])
    assert not any(same(last, weights) for weights in of_length.values()), "length 3 is the last"
    assert sidecar["updates"] == 3 * 2 * 5
    assert sidecar["size"] == sum(tensor.numel() for tensor in best.values())
    history = pd.read_csv(results / "history.csv")
    assert history["epoch"].tolist() == [1, 1, 2, 2, 3, 3]
    assert history.columns.tolist() == [
        "step", "epoch", "tokens", "critic_loss", "wasserstein", "gradient_penalty", "critic_gradient_norm",
        "generator_loss", "generator_gradient_norm", "validation_bpc",
    ]  # fmt: skip
    assert set(spent(tmp_path)) == {results / "resume.safetensors"}
    with safe_open(results / "resume.safetensors", "pt") as file:
        assert "float32 on cpu" in json.loads(file.metadata()["key"]), "not for nodes of another kind"


def test_the_stage_s_files_are_the_same_byte_by_byte(tmp_path):
    one, other = stage(tmp_path, "one"), stage(tmp_path, "other")
    for name in ("model.safetensors", "last.safetensors", "kept.safetensors", "model.json", "history.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
