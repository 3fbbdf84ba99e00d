import math
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from ganlm.models.discriminator import Discriminator

VOCABULARY = 27
LENGTH = 20
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
FILTERS = (100, 200, 200, 200, 200, 100, 100, 100, 100, 100, 160, 160)


def by_width(network: Discriminator, of: str) -> list[Tensor]:
    """Filters of each width or their gradients, shape (width, embedding, filters), in the network's order."""
    found = []
    for group, widths in zip(network.filters, network.widths.values(), strict=True):
        tensor = group.grad if of == "gradients" else group.detach()
        found += tensor.transpose(0, 1).split(widths)
    return found


class Published(nn.Module):
    """The network as the paper draws it: embed, convolve, ReLU, maximum over time, highway, linear."""

    def __init__(self, twin: Discriminator) -> None:
        super().__init__()
        features = twin.output.in_features
        self.embedding = nn.Embedding.from_pretrained(twin.embedding.detach().clone(), freeze=False)
        self.convolutions = nn.ModuleList()
        weights = by_width(twin, "weights")
        for weight, bias in zip(weights, twin.bias.split([w.shape[2] for w in weights]), strict=True):
            width, embedding, filters = weight.shape
            convolution = nn.Conv1d(embedding, filters, width).to(weight.dtype)
            convolution.weight.data = weight.permute(2, 1, 0).clone()
            convolution.bias.data = bias.detach().clone()
            self.convolutions.append(convolution)
        self.transform, self.gate, self.output = (nn.Linear(features, n) for n in (features, features, 2))
        self.transform.weight.data, self.gate.weight.data = twin.highway.weight.detach().clone().chunk(2)
        self.transform.bias.data, self.gate.bias.data = twin.highway.bias.detach().clone().chunk(2)
        self.output.load_state_dict(twin.output.state_dict())
        self.to(twin.embedding.dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens).transpose(1, 2)
        h = torch.cat([c(embedded).relu().max(dim=2).values for c in self.convolutions], dim=1)
        t = torch.sigmoid(self.gate(h))
        return self.output(t * torch.relu(self.transform(h)) + (1 - t) * h)


def discriminator(length: int = LENGTH, seed: int = 1, **options) -> Discriminator:
    torch.manual_seed(seed)
    return Discriminator(VOCABULARY, length, **options)


def sequences(rows: int, length: int = LENGTH, seed: int = 2) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (rows, length), generator=random)


@pytest.fixture(scope="module")
def full() -> Discriminator:
    """At the paper's size. Shared: do not change it."""
    return discriminator().eval()


@pytest.mark.parametrize("length", [LENGTH, 13, 2])
def test_folding_changes_neither_the_logits_nor_any_gradient(length):
    folded = discriminator(length).double().eval()
    plain = Published(folded)
    tokens = torch.cat([sequences(5, length), torch.zeros(1, length, dtype=torch.long)])
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    for network in (folded, plain):
        nn.functional.cross_entropy(network(tokens), labels).backward()
    torch.testing.assert_close(folded(tokens), plain(tokens), rtol=1e-12, atol=1e-12)
    pairs = [
        (folded.embedding.grad, plain.embedding.weight.grad),
        (folded.highway.weight.grad, torch.cat([plain.transform.weight.grad, plain.gate.weight.grad])),
        (folded.highway.bias.grad, torch.cat([plain.transform.bias.grad, plain.gate.bias.grad])),
        (folded.output.weight.grad, plain.output.weight.grad),
        (folded.output.bias.grad, plain.output.bias.grad),
    ]
    pairs.append((folded.bias.grad, torch.cat([c.bias.grad for c in plain.convolutions])))
    for gradient, convolution in zip(by_width(folded, "gradients"), plain.convolutions, strict=True):
        pairs.append((gradient, convolution.weight.grad.permute(2, 1, 0)))
    assert sum(found.numel() for found, _ in pairs) == sum(p.numel() for p in folded.parameters())
    for found, expected in pairs:
        assert expected.abs().max() > 0
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_the_folded_network_is_the_plain_one_in_single_precision(full):
    tokens = sequences(16)
    torch.testing.assert_close(full(tokens), Published(full)(tokens), rtol=1e-4, atol=1e-4)


def test_the_order_of_tokens_matters_but_not_where_a_window_stands():
    """With widths 1 and 2: turned in a ring, a text keeps its tokens and pairs; reversed, it does not."""
    network = discriminator(2).eval()
    text = torch.tensor([[1, 2, 3, 4, 5, 1]])
    rotated = torch.tensor([[3, 4, 5, 1, 2, 3]])
    torch.testing.assert_close(network(rotated), network(text))
    assert (network(text.flip(1)) - network(text)).abs().max() > 1e-3


def test_the_published_size(full):
    """6.73 M parameters, 5.92 M of them in the highway layer; 1,720 features."""
    sizes = {name: p.numel() for name, p in full.named_parameters()}
    highway = sum(size for name, size in sizes.items() if name.startswith("highway"))
    assert full.output.in_features == 1720
    assert round(sum(sizes.values()) / 1e6, 2) == 6.73
    assert round(highway / 1e6, 2) == 5.92
    assert all(p.requires_grad for p in full.parameters())
    found = [(len(weight), weight.shape[2]) for weight in by_width(full, "weights")]
    assert sorted(found) == list(zip(WIDTHS, FILTERS, strict=True))


@pytest.mark.parametrize("length", [2, 10, 14, 15, 19, 40])
def test_filters_wider_than_the_sequence_are_left_out(length):
    network = discriminator(length)
    found = [len(weight) for weight in by_width(network, "weights")]
    assert sorted(found) == [width for width in WIDTHS if width <= length]
    assert network(sequences(3, length)).shape == (3, 2)


def test_the_embedding_and_the_filters_start_as_published(full):
    """Uniform(-1, 1) has the standard deviation 1/√3; a normal cut at two sigma has 0.8796 sigma."""
    embedding = full.embedding.detach()
    assert 0.99 < embedding.abs().max() <= 1
    assert embedding.std().item() == pytest.approx(1 / math.sqrt(3), rel=0.05)
    for weight in (*full.filters, full.output.weight):
        assert weight.abs().max() <= 0.2
        assert weight.std().item() == pytest.approx(0.08796, rel=0.05)
        assert abs(weight.mean().item()) < 5 * 0.088 / math.sqrt(weight.numel())
    for bias in (full.bias, full.output.bias):
        assert (bias == 0.1).all()


def test_the_highway_layer_starts_from_glorot_s_uniform(full):
    """`get_variable` without an initializer, for matrices and biases: ±√(6 / (1720 + 1720))."""
    limit = math.sqrt(6 / 3440)
    for tensor in (full.highway.weight, full.highway.bias):
        assert 0.99 * limit < tensor.abs().max() <= limit
        assert tensor.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize(("gate_bias", "carried"), [(-50.0, True), (50.0, False)])
def test_the_gate_chooses_between_carrying_and_transforming(gate_bias, carried):
    """t relu(Wh + b) + (1 - t) h: with W = 0 and b = 1 the transformed features are ones."""
    network = discriminator(3).eval()
    features = network.output.in_features
    with torch.no_grad():
        network.highway.weight.zero_()
        network.highway.bias[:features] = 1
        network.highway.bias[features:] = gate_bias
        network.output.weight[1] = 1
        network.output.bias[1] = 0
    tokens = sequences(4, 3)
    h = torch.cat(
        [
            torch.stack(
                [
                    sum(network.embedding[tokens[:, t + j]] @ weight[j] for j in range(len(weight)))
                    for t in range(3 - len(weight) + 1)
                ]
            ).amax(dim=0)
            for weight in by_width(network, "weights")
        ],
        dim=1,
    )
    h = (h + network.bias).relu()
    expected = h.sum(dim=1) if carried else torch.full((4,), float(features))
    torch.testing.assert_close(network(tokens)[:, 1], expected, rtol=1e-4, atol=1e-3)


def test_real_is_the_probability_of_class_one(full):
    tokens = sequences(7)
    logits = full(tokens)
    expected = torch.sigmoid(logits[:, 1] - logits[:, 0])
    torch.testing.assert_close(full.real(tokens), expected, rtol=1e-5, atol=1e-7)


def test_dropout_acts_in_training_only_and_on_a_quarter_of_the_features():
    """Of the outputs w h / 0.75 with w = 1 that are kept, the mean is that without dropout."""
    network = discriminator()
    tokens = sequences(1).expand(400, -1)
    with torch.no_grad():
        network.output.weight.fill_(1)
        torch.manual_seed(3)
        noisy = network.train()(tokens)[:, 0]
        clean = network.eval()(tokens)[:, 0]
        highway = network.dropout.register_forward_hook(lambda _, args, __: kept.append(args[0][0]))
        kept: list[Tensor] = []
        network(tokens)
        highway.remove()
    assert (clean - clean[0]).abs().max() < 1e-3
    standard_deviation = math.sqrt((kept[0] ** 2).sum().item() * 0.25 / 0.75)
    assert noisy.std().item() == pytest.approx(standard_deviation, rel=0.2)
    assert abs(noisy.mean().item() - clean[0].item()) < 5 * standard_deviation / math.sqrt(400)


def test_the_penalty_is_half_the_squares_of_the_output_layer_only():
    network = discriminator(2)
    with torch.no_grad():
        network.output.weight.fill_(2)
        network.output.bias.fill_(3)
    assert network.penalty().item() == pytest.approx((2 * 300 * 4 + 2 * 9) / 2)
    network.penalty().backward()
    touched = {name for name, p in network.named_parameters() if p.grad is not None}
    assert touched == {"output.weight", "output.bias"}
    assert (network.output.weight.grad == 2).all()


def test_bfloat16_is_close_to_single_precision(full):
    tokens = sequences(64)
    with torch.no_grad():
        exact = full(tokens)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = full(tokens)
            probability = full.real(tokens)
    assert probability.dtype == torch.float32
    assert (rounded.float() - exact).abs().max() < 0.05 * exact.std(), "beside the spread of the logits"
    assert (probability - full.real(tokens)).abs().max() < 0.02


def test_gradients_in_bfloat16_are_those_of_single_precision_but_for_rounding():
    tokens, labels = sequences(64), torch.arange(64) % 2
    gradients = []
    for enabled in (False, True):
        network = discriminator().eval()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            logits = network(tokens)
        nn.functional.cross_entropy(logits.float(), labels).backward()
        gradients.append([p.grad for p in network.parameters()])
    for exact, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == torch.float32
        cosine = nn.functional.cosine_similarity(exact.flatten(), rounded.flatten(), dim=0)
        assert cosine > 0.98


def test_a_sure_verdict_is_not_rounded_to_the_next_bfloat16(full):
    """Around -20 these are 0.125 apart: e to that power is a step of 13% in the probability."""
    network, tokens = deepcopy(full), sequences(64)
    with torch.no_grad():
        network.output.bias.copy_(torch.tensor([20.0, 0.0]))
        network.output.weight.mul_(0.01)
        exact = network.real(tokens)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = network.real(tokens)
    assert exact.max() < 1e-7
    assert exact.std() / exact.mean() > 0.001
    torch.testing.assert_close(rounded, exact, rtol=0.01, atol=0)
