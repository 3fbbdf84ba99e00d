import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ganlm.corpus import Alphabet
from ganlm.generator import Surroundings
from ganlm.models import recurrent_gan
from ganlm.models.recurrent_gan import Architecture, Critic, Generator, Gru, RecurrentGan

CPU = torch.device("cpu")
VOCABULARY, HIDDEN = 6, 5
WINDOWS = np.random.default_rng(3).integers(VOCABULARY, size=(4, 9))


def sharp(network: nn.Module, seed: int = 1) -> nn.Module:
    """Weights far from their small start, so that every term matters."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(generator=random)
    return network


def generator(layers: int = 1, noise_std: float = 2.0) -> Generator:
    return sharp(Generator(VOCABULARY, Architecture(HIDDEN, layers, noise_std)))


def size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def numbers(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}


def twin_step(gru: Gru, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The cell as TensorFlow writes it: two kernels over [x, h] and [x, r ∘ h], gates in the order r, u."""
    weights, size = numbers(gru), h.shape[1]
    w_gates, w_candidate = np.split(weights["inputs"], [2 * size], axis=1)
    b_gates, b_candidate = np.split(weights["bias"], [2 * size])
    kernel = np.concatenate([w_gates, weights["gates"]])
    r, u = np.split(sigmoid(np.concatenate([x, h], axis=1) @ kernel + b_gates), 2, axis=1)
    kernel = np.concatenate([w_candidate, weights["candidate"]])
    c = np.tanh(np.concatenate([x, r * h], axis=1) @ kernel + b_candidate)
    return u * h + (1 - u) * c


def twin_states(layers: list[Gru], inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Of the last layer, from inputs of shape (rows, length, size); all layers start from one state."""
    for layer in layers:
        h, outputs = state, []
        for x in inputs.swapaxes(0, 1):
            h = twin_step(layer, x, h)
            outputs.append(h)
        inputs = np.stack(outputs, axis=1)
    return inputs


def twin_probabilities(network: Generator, windows: np.ndarray, noise: np.ndarray) -> np.ndarray:
    weights = numbers(network)
    start = np.broadcast_to(weights["start"], (len(windows), 1, HIDDEN))
    inputs = np.concatenate([start, weights["embedding"][windows[:, :-1]]], axis=1)
    states = twin_states(list(network.layers), inputs, noise)
    odds = np.exp(states @ weights["output.weight"].T + weights["output.bias"])
    return odds / odds.sum(axis=-1, keepdims=True)


def test_the_cell_by_hand():
    """One unit: r = σ(1), u = σ(-1), c = tanh(0.5 + r 2 / 2), h' = u 2 + (1 - u) c."""
    gru = Gru(1, 1)
    with torch.no_grad():
        gru.inputs.copy_(torch.tensor([[1.0, -1.0, 0.5]]))
        gru.gates.copy_(torch.tensor([[2.0, 1.0]]))
        gru.candidate.fill_(0.5)
        gru.bias.copy_(torch.tensor([-4.0, -2.0, 0.0]))
    state = gru.step(gru.project(torch.tensor([[1.0]])), torch.tensor([[2.0]]))
    r, u = 1 / (1 + math.exp(-(1 + 4 - 4))), 1 / (1 + math.exp(-(-1 + 2 - 2)))
    assert (r, u) == pytest.approx((0.73105858, 0.26894142))
    assert state.item() == pytest.approx(u * 2 + (1 - u) * math.tanh(0.5 + r * 2 / 2), rel=1e-6)


def test_states_are_those_of_the_equations():
    rng = np.random.default_rng(1)
    gru, x, h = sharp(Gru(3, HIDDEN)), rng.normal(size=(4, 7, 3)), rng.normal(size=(4, HIDDEN))
    projected = gru.project(torch.from_numpy(x).float().transpose(0, 1))
    states = gru(projected, torch.from_numpy(h).float())
    np.testing.assert_allclose(states.detach().transpose(0, 1), twin_states([gru], x, h), atol=1e-5)


def test_without_a_reset_the_cell_is_that_of_torch():
    """With r = 1 it does not matter on which side of the product the gate stands; torch orders r, u, c."""
    gru = sharp(Gru(3, HIDDEN))
    with torch.no_grad():
        gru.bias[:HIDDEN] = 1000.0
    twin = nn.GRU(3, HIDDEN)
    twin.load_state_dict(
        {
            "weight_ih_l0": gru.inputs.T,
            "weight_hh_l0": torch.cat([gru.gates, gru.candidate], dim=1).T,
            "bias_ih_l0": gru.bias,
            "bias_hh_l0": torch.zeros(3 * HIDDEN),
        }
    )
    x, h = torch.randn(7, 4, 3), torch.randn(4, HIDDEN)
    torch.testing.assert_close(gru(gru.project(x), h), twin(x, h[None])[0])


@pytest.mark.parametrize("layers", [1, 3])
def test_the_generator_is_that_of_the_equations(layers):
    network, noise = generator(layers), np.random.default_rng(2).normal(size=(4, HIDDEN))
    logits = network(torch.from_numpy(WINDOWS), torch.from_numpy(noise).float())
    expected = twin_probabilities(network, WINDOWS, noise)
    np.testing.assert_allclose(logits.softmax(dim=-1).detach(), expected, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_critic_is_that_of_the_equations(layers):
    """Soft, one-hot and all-zero inputs alike; zero state, last output, one number."""
    critic = sharp(Critic(VOCABULARY, Architecture(HIDDEN, layers)))
    items = np.random.default_rng(4).dirichlet(np.ones(VOCABULARY), size=(3, 7))
    items[0, :4] = 0
    items[1] = np.eye(VOCABULARY)[WINDOWS[0, :7]]
    weights = numbers(critic)
    states = twin_states(list(critic.layers), items @ weights["embedding"], np.zeros((3, HIDDEN)))
    expected = states[:, -1] @ weights["output"] + weights["bias"]
    np.testing.assert_allclose(critic(torch.from_numpy(items).float()).detach(), expected, atol=1e-4)


def test_as_many_numbers_as_published():
    architecture = Architecture(512)
    generator, critic = Generator(27, architecture), Critic(27, architecture)
    gru = 1024 * 1024 + 1024 + 1024 * 512 + 512
    assert size(generator) == gru + 27 * 512 + 512 + 512 * 27 + 27 == 1_602_587
    assert size(critic) == gru + 27 * 512 + 512 + 1 == 1_588_737


def assert_uniform(values: torch.Tensor, bound: float) -> None:
    """Within the bounds, near them, and with the deviation of a uniform."""
    drawn = values.detach().numpy().ravel()
    assert np.abs(drawn).max() <= bound
    assert np.abs(drawn).max() > 0.95 * bound
    assert drawn.std() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert abs(drawn.mean()) < 5 * bound / math.sqrt(3 * drawn.size)


def test_the_networks_start_as_published():
    torch.manual_seed(1)
    architecture = Architecture(200)
    generator, critic = Generator(300, architecture), Critic(300, architecture)
    for parameter in (generator.embedding, generator.start, critic.embedding, critic.output):
        assert_uniform(parameter, 0.1)
    for parameter in generator.output.parameters():
        assert_uniform(parameter, 0.1)
    for gru in (generator.layers[0], critic.layers[0]):
        assert_uniform(torch.cat([gru.inputs[:, :400], gru.gates]), math.sqrt(6 / (400 + 400)))
        assert_uniform(torch.cat([gru.inputs[:, 400:], gru.candidate]), math.sqrt(6 / (400 + 200)))
        assert gru.bias.tolist() == [1.0] * 400 + [0.0] * 200


def test_noise_has_its_deviation_and_follows_from_the_seed():
    network = Generator(VOCABULARY, Architecture(1000, noise_std=10.0))
    one, same, other = (network.noise(50, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.std().item() == pytest.approx(10, rel=0.02)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_critic_can_be_differentiated_twice(layers):
    """First and second derivatives against finite differences, by inputs and by every weight."""
    critic = sharp(Critic(3, Architecture(2, layers))).double()
    items = torch.rand(2, 3, 3, dtype=torch.double, requires_grad=True)
    names = [name for name, _ in critic.named_parameters()]

    def score(items: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(critic, dict(zip(names, weights, strict=True)), (items,))

    weights = [parameter.detach().clone().requires_grad_() for parameter in critic.parameters()]
    assert torch.autograd.gradcheck(score, (items, *weights))
    assert torch.autograd.gradgradcheck(score, (items, *weights))


def noise_of(network: Generator, draws: int, seed: int) -> np.ndarray:
    """What a model draws: floats of single precision."""
    rng = np.random.default_rng(seed)
    return network.noise_std * rng.standard_normal((draws, HIDDEN), dtype=np.float32).astype(float)


@pytest.mark.parametrize("layers", [1, 2])
def test_predictions_are_those_of_the_teacher_forced_pass(layers):
    network, draws = generator(layers), 8
    model = RecurrentGan(network, CPU)
    window = WINDOWS[0]
    expected = twin_probabilities(network, np.tile(window, (draws, 1)), noise_of(network, draws, 7))
    state = model.start(draws, np.random.default_rng(7))
    for position, token in enumerate(window):
        p = model.predict(state)
        assert p.shape == (draws, VOCABULARY)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(p, expected[:, position], atol=1e-5)
        state = model.feed(state, int(token))
    assert expected.std(axis=0).max() > 0.1, "the noise matters"


def test_feeding_leaves_the_old_state_alone():
    """A tree of prefixes: two children of one state, in either order, and the state itself."""
    model = RecurrentGan(generator(2), CPU)
    root = model.start(5, np.random.default_rng(1))
    before = model.predict(root)
    left, right = model.predict(model.feed(root, 0)), model.predict(model.feed(root, 1))
    assert not np.allclose(left, right)
    np.testing.assert_array_equal(model.predict(model.feed(root, 0)), left)
    np.testing.assert_array_equal(model.predict(root), before)


def twin_sample(network: Generator, noise: np.ndarray, length: int, refeed: bool) -> list[int]:
    """One row, one vector at a time: the list of what is read, all of it again for each token if refed."""
    weights = numbers(network)
    states = [noise[None]] * len(network.layers)
    read, emitted = [weights["start"]], []
    for _ in range(length):
        for x in read if refeed else [read[-1]]:
            below = x[None]
            for number, layer in enumerate(network.layers):
                below = states[number] = twin_step(layer, below, states[number])
        emitted.append(int((below @ weights["output.weight"].T + weights["output.bias"]).argmax()))
        read.append(weights["embedding"][emitted[-1]])
    return emitted


@pytest.mark.parametrize("layers", [1, 2])
def test_samples_are_most_likely_tokens_fed_back_or_refed(layers):
    network, rows, length = generator(layers), 10, 12
    noise = noise_of(network, rows, 5)
    found = {}
    for refeed in (False, True):
        model = RecurrentGan(network, CPU, refeed=refeed)
        found[refeed] = model.sample(rows, length, np.random.default_rng(5))
        assert found[refeed].dtype == np.int64
        assert found[refeed].tolist() == [twin_sample(network, z, length, refeed) for z in noise]
    assert (found[False][:, 0] == found[True][:, 0]).all(), "they part after the first token"
    assert (found[False] != found[True]).any()


def test_low_precision_rounds_products_and_nothing_else():
    network = generator(layers=2)
    exact, rounded = (
        RecurrentGan(deepcopy(network), CPU, precision=precision) for precision in ("float32", "bfloat16")
    )
    states = [model.start(500, np.random.default_rng(7)) for model in (exact, rounded)]
    for token in (1, 4, 0):
        states = [model.feed(state, token) for model, state in zip((exact, rounded), states, strict=True)]
    assert all(part.dtype == torch.float32 for part in states[1])
    p, q = exact.predict(states[0]), rounded.predict(states[1])
    assert 0 < np.abs(p - q).max() < 0.05
    assert np.abs(np.log2(p.mean(axis=0) / q.mean(axis=0))).max() < 0.002


def test_a_clean_sample_is_the_most_likely_path_of_its_draw():
    model = RecurrentGan(generator(), CPU)
    path = model.sample(1, 9, np.random.default_rng(6))[0]
    state = model.start(1, np.random.default_rng(6))
    for token in path:
        assert model.predict(state).argmax() == token
        state = model.feed(state, int(token))


BLOCK = {"kind": "recurrent_gan", "hidden": HIDDEN, "layers": 1, "noise_std": 2.0, "refeed": False}
SURROUNDINGS = Surroundings(Alphabet(tuple("abcdef")))


@pytest.mark.parametrize("stage", [None, 1, 10])
def test_a_saved_generator_is_loaded_by_stage_or_as_the_best(stage, tmp_path):
    networks = {number: sharp(Generator(VOCABULARY, Architecture(HIDDEN)), number) for number in (1, 10)}
    weights = {
        f"epoch-{number}/{name}": tensor
        for number, network in networks.items()
        for name, tensor in network.state_dict().items()
    }
    path = tmp_path / "weights.safetensors"
    save_file(weights if stage else dict(networks[1].state_dict()), path)
    block = BLOCK | {"refeed": True} | ({"epoch": stage} if stage else {})
    model = recurrent_gan.load(block, [str(path)], SURROUNDINGS)
    expected = networks[stage or 1].state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.network.state_dict().items())
    assert (model.refeed, model.network.noise_std, model.vocabulary) == (True, 2.0, VOCABULARY)
    assert model.strength == "latent"


@pytest.mark.parametrize("block", [BLOCK | {"epoch": 2}, BLOCK | {"hidden": 6}, BLOCK | {"layers": 2}])
def test_a_file_without_the_weights_gets_a_sentence(block, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(dict(generator().state_dict()), path)
    for damage in (None, b"junk"):
        if damage:
            path.write_bytes(damage)
        with pytest.raises(ValueError, match=r"holds no weights .*of a model of these sizes: delete"):
            recurrent_gan.load(block, [str(path)], SURROUNDINGS)
