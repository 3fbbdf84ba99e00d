import math
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ganlm.corpus import Alphabet
from ganlm.generator import Explicit, Surroundings
from ganlm.models import lstm
from ganlm.models.lstm import Architecture, LanguageModel, Lstm, load, save, shifted

CPU = torch.device("cpu")
VOCABULARY = 7
SMALL = {"embedding": 3, "hidden": 5, "layers": 1, "dropout": 0.0}
RNG = np.random.default_rng(5)
TOKENS = RNG.integers(VOCABULARY, size=(4, 300))


def network(vocabulary=VOCABULARY, seed=1, **changes) -> LanguageModel:
    torch.manual_seed(seed)
    return LanguageModel(vocabulary, Architecture(**SMALL | changes))


def sharp(**changes) -> LanguageModel:
    """Weights ten times as large, so that the distributions are far from uniform and the state matters."""
    model = network(**changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10)
    return model


def size(model: LanguageModel) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def equations(model: LanguageModel, tokens: np.ndarray) -> np.ndarray:
    """Logits in double precision by the gates' equations, one bias per gate; PyTorch stacks i, f, g, o."""
    weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    x = weights["embedding.weight"][tokens]
    layer = 0
    while f"lstm.weight_ih_l{layer}" in weights:
        w, u, b = (weights[f"lstm.{name}_l{layer}"] for name in ("weight_ih", "weight_hh", "bias_ih"))
        h = c = np.zeros((len(tokens), u.shape[1]))
        outputs = []
        for step in range(tokens.shape[1]):
            i, f, g, o = np.split(x[:, step] @ w.T + h @ u.T + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs.append(h)
        x = np.stack(outputs, axis=1)
        layer += 1
    return x @ weights["output.weight"].T + weights["output.bias"]


def twin_bits(model: LanguageModel, windows: np.ndarray) -> np.ndarray:
    """Bits of windows that start from nothing: the network reads token 0 first."""
    logits = equations(model, np.pad(windows, ((0, 0), (1, 0)))[:, :-1])
    log_p = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    return -np.take_along_axis(log_p, windows[:, :, None], axis=2)[:, :, 0] / math.log(2)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("embedding", "hidden"), [(3, 5), (5, 5), (1, 1)])
def test_logits_are_those_of_the_equations(embedding, hidden, layers):
    model = sharp(embedding=embedding, hidden=hidden, layers=layers)
    logits, _ = model(torch.from_numpy(TOKENS[:, :50]))
    np.testing.assert_allclose(logits.detach(), equations(model, TOKENS[:, :50]), atol=1e-4)


@pytest.mark.parametrize(("embedding", "hidden", "published"), [(8, 512, 1_081_075), (32, 32, 10_075)])
def test_as_many_trained_numbers_as_published(embedding, hidden, published):
    assert size(network(27, embedding=embedding, hidden=hidden)) == published


def test_every_weight_starts_from_the_same_normal():
    """Means and deviations of each tensor within 5 standard errors of 0 and 0.1, quantiles of them all."""
    model = network(vocabulary=300, embedding=40, hidden=120, layers=2)
    drawn = {name: p.detach().numpy().ravel() for name, p in model.named_parameters() if p.requires_grad}
    assert {name.split(".")[0] for name in drawn} == {"embedding", "lstm", "output"}
    for name, values in drawn.items():
        error = 0.1 / math.sqrt(values.size)
        assert abs(values.mean()) < 5 * error, name
        assert abs(values.std() - 0.1) < 5 * error / math.sqrt(2), name
    together = np.concatenate(list(drawn.values())) / 0.1
    for bound in (-2, -1, 0, 1, 2):
        share = 0.5 * math.erfc(-bound / math.sqrt(2))
        error = math.sqrt(share * (1 - share) / together.size)
        assert abs((together <= bound).mean() - share) < 5 * error


def test_the_initial_weights_follow_from_the_seed():
    one, same, other = (network(seed=seed).output.weight for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_second_bias_is_zero_and_stays_so_while_all_else_moves(layers):
    model = network(layers=layers)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        logits, _ = model(torch.from_numpy(TOKENS))
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(TOKENS).flatten()).backward()
        optimizer.step()
    for name, tensor in model.state_dict().items():
        if "bias_hh" in name:
            assert not before[name].any()
            assert not tensor.any()
        else:
            assert not torch.equal(tensor, before[name]), name


def test_the_network_reads_token_0_before_the_window():
    windows = torch.tensor([[3, 1, 2], [5, 5, 0]])
    assert shifted(windows).tolist() == [[0, 3, 1], [0, 5, 5]]
    model = Lstm(sharp(), CPU)
    logits = equations(model.network, np.zeros((1, 1), np.int64))[0, 0]
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(model.predict(model.start(2)), [expected, expected], rtol=1e-4)


def test_bits_are_those_of_the_equations():
    model = Lstm(sharp(), CPU)
    bits, _ = model.surprisal(model.start(len(TOKENS)), TOKENS)
    expected = twin_bits(model.network, TOKENS)
    assert bits.max() > 2 * math.log2(VOCABULARY), "a nearly uniform model would hide mistakes"
    np.testing.assert_allclose(bits, expected, atol=2e-4)


def test_bits_are_those_of_the_slow_default():
    model = Lstm(sharp(layers=2), CPU)
    fast, after = model.surprisal(model.start(len(TOKENS)), TOKENS)
    slow, after_slow = Explicit.surprisal(model, model.start(len(TOKENS)), TOKENS)
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    np.testing.assert_allclose(model.predict(after), model.predict(after_slow), atol=1e-5)


@pytest.mark.parametrize("steps", [1, 7, 299, 300, 1000])
def test_bits_do_not_depend_on_the_steps_at_once(steps, monkeypatch):
    model = Lstm(sharp(), CPU)
    expected, _ = model.surprisal(model.start(len(TOKENS)), TOKENS)
    monkeypatch.setattr(lstm, "STEPS_AT_ONCE", steps)
    bits, _ = model.surprisal(model.start(len(TOKENS)), TOKENS)
    np.testing.assert_allclose(bits, expected, atol=1e-4)


@pytest.mark.parametrize("cuts", [[1], [128], [5, 5, 6, 200], list(range(1, 300, 13))])
def test_a_carried_text_may_be_split_anywhere(cuts):
    model = Lstm(sharp(), CPU)
    expected, end = model.surprisal(model.start(len(TOKENS)), TOKENS)
    state, pieces = model.start(len(TOKENS)), []
    for piece in np.split(TOKENS, cuts, axis=1):
        bits, state = model.surprisal(state, piece)
        pieces.append(bits)
    np.testing.assert_allclose(np.concatenate(pieces, axis=1), expected, atol=1e-4)
    np.testing.assert_allclose(model.predict(state), model.predict(end), atol=1e-5)


def test_feeding_and_scoring_lead_to_the_same_state():
    model = Lstm(sharp(), CPU)
    start = model.start(len(TOKENS))
    _, scored = model.surprisal(start, TOKENS)
    fed = model.feed(model.feed(model.feed(start, TOKENS[:, :100]), TOKENS[:, :0]), TOKENS[:, 100:])
    np.testing.assert_allclose(model.predict(fed), model.predict(scored), atol=1e-5)


def test_reading_leaves_the_state_it_started_from():
    model = Lstm(sharp(), CPU)
    start = model.start(1)
    before = model.predict(start)
    model.feed(start, TOKENS[:1])
    model.surprisal(start, TOKENS[:1])
    np.testing.assert_array_equal(model.predict(start), before)


def test_probabilities_add_up_to_one():
    model = Lstm(sharp(vocabulary=300), CPU)
    p = model.predict(model.feed(model.start(4), TOKENS))
    assert p.dtype == np.float64
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    chances = 0.0
    for token in range(VOCABULARY):
        first = Lstm(sharp(), CPU)
        bits, _ = first.surprisal(first.start(1), np.array([[token]]))
        chances += 2 ** -bits[0, 0]
    assert chances == pytest.approx(1, abs=1e-6)


def test_rows_are_independent_texts():
    model = Lstm(sharp(), CPU)
    together, _ = model.surprisal(model.start(len(TOKENS)), TOKENS)
    alone, _ = model.surprisal(model.start(1), TOKENS[2:3])
    np.testing.assert_allclose(together[2:3], alone, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_tokens_of_any_type_and_layout(dtype):
    model = Lstm(sharp(), CPU)
    expected, _ = model.surprisal(model.start(len(TOKENS)), TOKENS)
    narrow = np.asfortranarray(TOKENS.astype(dtype))
    narrow.flags.writeable = False
    np.testing.assert_array_equal(model.surprisal(model.start(len(TOKENS)), narrow)[0], expected)


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_is_off_in_evaluation(layers):
    network_with, network_without = (sharp(dropout=share, layers=layers) for share in (0.9, 0.0))
    network_with.train()
    one, other = Lstm(network_with, CPU), Lstm(network_without, CPU)
    bits = [model.surprisal(model.start(len(TOKENS)), TOKENS)[0] for model in (one, one, other)]
    np.testing.assert_array_equal(bits[0], bits[1])
    np.testing.assert_array_equal(bits[0], bits[2])


def test_dropout_leaves_the_recurrent_path_and_the_input_alone():
    model, plain = (sharp(dropout=share).train() for share in (0.5, 0.0))
    (_, state), (_, state_plain) = (each(torch.from_numpy(TOKENS)) for each in (model, plain))
    assert all(map(torch.equal, state, state_plain))


@torch.no_grad()
def test_dropout_acts_on_what_the_output_layer_reads():
    """A logit Σ_j W_j m_j h_j / (1 − p) + b, masks m: mean W h + b, variance p / (1 − p) Σ_j (W_j h_j)²."""
    model, plain, rows = sharp(dropout=0.25).train(), sharp(), 20_000
    tokens = torch.tensor([[3]])
    logits = model(tokens.expand(rows, 1))[0][:, 0]
    expected, (hidden, _) = plain(tokens)
    variance = 0.25 / 0.75 * ((plain.output.weight * hidden[0]) ** 2).sum(dim=1)
    error = (variance / rows).sqrt()
    assert ((logits.mean(dim=0) - expected[0, 0]).abs() < 5 * error).all()
    np.testing.assert_allclose(logits.var(dim=0), variance, rtol=0.1)


def test_dropout_acts_between_layers():
    """Section 2.1: on h between layers and before the output, so the second layer's state is noisy."""
    model = sharp(dropout=0.5, layers=2).train()
    tokens = torch.from_numpy(TOKENS)
    (_, (one, _)), (_, (other, _)) = model(tokens), model(tokens)
    assert torch.equal(one[0], other[0])
    assert not torch.equal(one[1], other[1])


def loaded(path, workers=1, **changes) -> Lstm:
    surroundings = Surroundings(Alphabet(tuple("abcdefg")), workers=workers)
    return load(SMALL | changes | {"kind": "lstm"}, [str(path), "model.json"], surroundings)


def test_what_was_saved_is_loaded_bit_by_bit(tmp_path):
    model = sharp(layers=2)
    save(model, tmp_path / "model.safetensors")
    again = loaded(tmp_path / "model.safetensors", layers=2)
    assert again.vocabulary == VOCABULARY
    assert not again.network.training
    before, after = model.state_dict(), again.network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    save(again.network, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


class Trap:
    """What unpickling would run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def other_sizes(path):
    save(network(hidden=6), path)


def other_alphabet(path):
    save(network(vocabulary=VOCABULARY + 1), path)


def more_layers(path):
    save(network(layers=2), path)


def a_tensor_less(path):
    save(network(), path)
    save_file({k: v for k, v in load_file(path).items() if k != "output.bias"}, path)


def a_pickle(path):
    path.write_bytes(pickle.dumps(Trap(path.with_name("executed"))))


def a_torch_pickle(path):
    torch.save({"weights": Trap(path.with_name("executed"))}, path)


def half_a_file(path):
    save(network(), path)
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    "write",
    [other_sizes, other_alphabet, more_layers, a_tensor_less, a_pickle, a_torch_pickle, half_a_file],
    ids=lambda write: write.__name__,
)
def test_other_files_are_refused_in_one_sentence_and_not_executed(write, tmp_path):
    path = tmp_path / "model.safetensors"
    write(path)
    with pytest.raises(ValueError, match="holds no weights of a model of these sizes") as caught:
        loaded(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "executed").exists()


def test_the_trap_is_one(tmp_path):
    a_pickle(tmp_path / "model.safetensors")
    pickle.loads((tmp_path / "model.safetensors").read_bytes()).close()
    assert (tmp_path / "executed").exists()


def test_samples_follow_the_distributions():
    """Shares of first and second tokens among many samples, within 5 standard errors."""
    model, rows = Lstm(sharp(), CPU), 20_000
    drawn = model.sample(rows, 2, np.random.default_rng(3))
    first = model.predict(model.start(1))[0]
    following = model.predict(model.feed(model.start(VOCABULARY), np.arange(VOCABULARY)[:, None]))
    for tokens, expected in ((drawn[:, 0], first), (drawn[:, 1], first @ following)):
        shares = np.bincount(tokens, minlength=VOCABULARY) / rows
        assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / rows) + 1e-9).all()
