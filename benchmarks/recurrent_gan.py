"""Speed of the Recurrent GAN at the paper's size, as ratios to what this machine can do, in the same run.

    python benchmarks/recurrent_gan.py
    python benchmarks/recurrent_gan.py --threads 1

Prints a Markdown table as `benchmarks/training.py` does, whose limits it uses.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from timing import best_seconds
from torch import Tensor, nn
from training import BUNDLED, CPU, PRECISION, VOCABULARY, at_most, limit_lines, limits, run, text
from workbench import Line

from ganlm.models.recurrent_gan import Architecture, Critic, Generator, RecurrentGan
from ganlm.noise_groups import group_records
from ganlm.prefix_tree import PrefixTree
from ganlm.textfile import read_chunks
from ganlm.training.wgan import Players, Settings, Trainer

HIDDEN, BATCH, WINDOW, DRAWS, CHARACTERS, SHARPNESS = 512, 64, 7, 100, 20_000, 5
ARCHITECTURE = Architecture(HIDDEN)
SETTINGS = Settings(
    lengths=(WINDOW,), iterations=1, critic_updates=10, generator_updates=50, batch=BATCH, windows=None,
    learning_rate=1e-4, critic_rate=1e-4, betas=(0.5, 0.9), penalty=10, optimizer_restart=True,
    skip_first_real=False, precision=PRECISION, log_every=1, keep=(WINDOW,), validation_tokens=700,
    validation_window=WINDOW, validation_draws=10, seed=1,
)  # fmt: skip


class Library(nn.Module):
    """The same sizes with PyTorch's own GRU, whose reset gate acts elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY + 1, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.output = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, windows: Tensor, noise: Tensor) -> Tensor:
        """Logits of windows that are read as they are."""
        return self.output(self.gru(self.embedding(windows), noise[None])[0])


def cell_lines(repeats: int) -> Iterator[Line]:
    """Forward and backward of the generator against the library's GRU."""
    for length in (WINDOW, 20):
        windows, noise = torch.randint(VOCABULARY, (BATCH, length)), torch.randn(BATCH, HIDDEN)

        def pass_of(
            network: nn.Module, windows: Tensor = windows, noise: Tensor = noise
        ) -> Callable[[], None]:
            def run() -> None:
                network.zero_grad(set_to_none=True)
                network(windows, noise).square().mean().backward()

            return run

        ours, library = best_seconds(
            [pass_of(Generator(VOCABULARY, ARCHITECTURE)), pass_of(Library())], 5 * repeats
        )
        ratio = ours / library
        yield Line(f"own GRU over nn.GRU, length {length}, time", f"{ratio:.2f}", "at most 2", ratio <= 2)


def training_lines(limit: dict[str, float], repeats: int) -> Iterator[Line]:
    """Updates of both players; the penalty's second derivative makes the critic's dear."""
    torch.manual_seed(1)
    networks = Generator(VOCABULARY, ARCHITECTURE), Critic(VOCABULARY, ARCHITECTURE)
    trainer = Trainer(Players.at_start(*networks, SETTINGS, CPU), text(100_000), text(10_000), SETTINGS, CPU)
    windows, random = torch.randint(VOCABULARY, (BATCH, WINDOW)), torch.Generator().manual_seed(1)
    critic, generator = best_seconds(
        [lambda: trainer.critic_update(windows, random), lambda: trainer.generator_update(windows, random)],
        5 * repeats,
    )
    one_pass = 2 * BATCH * WINDOW * 3 * HIDDEN * HIDDEN
    # Generator forward; critic on 2 batches, forward and backward; its gradient, and the gradient of that.
    for name, seconds, passes in (("critic", critic, 1 + 2 * 3 + 2 * 3), ("generator", generator, 3 + 2)):
        share = passes * one_pass / seconds / limit[PRECISION]
        yield Line(f"{name} update, milliseconds", f"{1e3 * seconds:.1f}")
        yield Line(f"{name} update, share of the {PRECISION} limit", f"{share:.2f}")
    iteration = SETTINGS.critic_updates * critic + SETTINGS.generator_updates * generator
    yield Line("one published iteration at length 7, seconds", f"{iteration:.2f}")


def evaluation_lines(limit: dict[str, float], repeats: int) -> Iterator[Line]:
    """One group of draws through the tree of all windows of some of the bundled text."""
    found = np.frombuffer(b"".join(read_chunks(BUNDLED)), np.uint8)[: CHARACTERS - CHARACTERS % WINDOW]
    tokens = np.where(found == ord(" "), 0, found.astype(np.int64) - ord("a") + 1)
    tree = PrefixTree.of(tokens.reshape(-1, WINDOW))
    records = {}

    def walk(precision: str) -> Callable[[], None]:
        model = RecurrentGan(sharp_generator(), CPU, precision=precision)

        def run() -> None:
            records[precision] = group_records(model, tree, DRAWS, (1, "bench", 0), lambda _: None)

        return run

    seconds = best_seconds([walk("float32"), walk("bfloat16")], repeats)
    steps = len(tree.inner) * DRAWS
    flop = 2 * HIDDEN * (3 * HIDDEN + VOCABULARY)
    yield Line("positions over prefixes, windows of 7", f"{tree.positions / len(tree.inner):.1f}")
    for precision, time in zip(("float32", "bfloat16"), seconds, strict=True):
        rate = tree.positions * DRAWS / time
        yield Line(f"evaluation in {precision}, (position x draw) per second", f"{rate:,.0f}")
        share = steps * flop / time / limit[precision]
        yield Line(f"evaluation in {precision}, share of the limit of its products", f"{share:.2f}")
    bits = {
        name: -np.log2(np.maximum(found["p"][tree.nodes] / DRAWS, 1e-20)).mean()
        for name, found in records.items()
    }
    yield Line("bits in float32", f"{bits['float32']:.3f}")
    yield at_most("bits moved by bfloat16", abs(bits["bfloat16"] - bits["float32"]), 0.002)


def sharp_generator() -> Generator:
    """Nearly one-hot, as training makes it: where probabilities are small, rounding matters most."""
    torch.manual_seed(1)
    generator = Generator(VOCABULARY, ARCHITECTURE)
    with torch.no_grad():
        generator.output.weight.mul_(SHARPNESS)
    return generator


def lines(repeats: int) -> Iterator[Line]:
    """All rows of the table."""
    limit = limits(repeats)
    yield from limit_lines(limit)
    yield from cell_lines(repeats)
    yield from training_lines(limit, repeats)
    yield from evaluation_lines(limit, repeats)


if __name__ == "__main__":
    run(__doc__, lines)
