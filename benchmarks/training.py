"""Speed of training at the paper's sizes, as ratios to what this machine can do, measured in the same run.

    python benchmarks/training.py
    python benchmarks/training.py --threads 1

Prints a Markdown table as `benchmarks/evaluator.py` does. The limit is the rate of a large product of two
matrices; a stage's arithmetic is counted by hand and divided by its time. Networks are trained in the
precision that `auto` comes to on this machine.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from timing import best_seconds
from torch import Tensor, nn
from workbench import Line, print_table

from ganlm.device import choose_precision, use_threads
from ganlm.models.discriminator import WIDTHS, Discriminator
from ganlm.models.lstm import START, Architecture, LanguageModel, Lstm
from ganlm.textfile import read_chunks
from ganlm.training import mle, rollout, seqgan

CPU = torch.device("cpu")
PRECISION = choose_precision("auto", CPU)
VOCABULARY, EMBEDDING, HIDDEN, BATCH, LENGTH, REPEATS = 27, 8, 512, 64, 20, 16
SIDE = 2048
BUNDLED = Path(__file__).parents[1] / "resources" / "text8-2m.xz"
PRETRAINING = mle.Settings(
    epochs=1, updates=20, batch=BATCH, window=LENGTH, carry=False, learning_rate=0.01, decay=1, decay_from=6,
    schedule="constant", clip=5, precision=PRECISION, validate_every=1, validation_tokens=50_000,
    validation_window=1000, seed=1,
)  # fmt: skip
ADVERSARIAL = seqgan.Settings(
    epochs=1, length=LENGTH, batch=BATCH, sequences=9984, pretrain_rounds=0, rounds=5, passes=3,
    repeats=REPEATS, learning_rate=0.01, discriminator_rate=1e-4, clip=5, penalty=0.2,
    discriminator_embedding=64, discriminator_dropout=0.25, held_out=1000, shuffle=True, rollout_lag=0.8,
    sampling_dropout=False, loss="mean", reward="discriminator", baseline=False, adam="pytorch",
    precision=PRECISION, keep=(1,), validation_tokens=50_000, validation_window=1000, seed=1,
)  # fmt: skip
FEATURES = sum(filters * len(widths) for filters, widths in WIDTHS.items())
UPDATES_OF_A_CLASS = 50
UPDATES_PER_EPOCH = (
    ADVERSARIAL.rounds * ADVERSARIAL.passes * -(-2 * ADVERSARIAL.sequences // ADVERSARIAL.batch)
)


def language_model() -> LanguageModel:
    """Of the paper's size; speed does not depend on its weights."""
    torch.manual_seed(1)
    return LanguageModel(VOCABULARY, Architecture(EMBEDDING, HIDDEN))


def text(tokens: int) -> np.ndarray:
    """Random tokens: speed does not depend on them either."""
    return np.random.default_rng(1).integers(VOCABULARY, size=tokens).astype(np.uint8)


def limits(repeats: int) -> dict[str, float]:
    """FLOP per second of a large product, by precision."""
    factors = {kind: torch.randn(SIDE, SIDE, dtype=getattr(torch, kind)) for kind in ("float32", "bfloat16")}
    seconds = best_seconds([lambda m=matrix: m @ m for matrix in factors.values()], repeats)
    return {kind: 2 * SIDE**3 / time for kind, time in zip(factors, seconds, strict=True)}


def limit_lines(limit: dict[str, float]) -> Iterator[Line]:
    """What the machine can do."""
    for kind, rate in limit.items():
        yield Line(f"matrix product, {kind}, GFLOP/s", f"{rate / 1e9:,.0f}")
    yield Line("bfloat16 over float32, rate", f"{limit['bfloat16'] / limit['float32']:.2g}")


def pretraining_lines(limit: dict[str, float], repeats: int) -> Iterator[Line]:
    """An epoch of `mle`, data path and clipping and record included, against a bare step of `nn.LSTM`."""
    tokens = text(2_000_000)

    def epoch(precision: str) -> Callable[[], object]:
        network, settings = language_model(), replace(PRETRAINING, precision=precision)
        adam = torch.optim.Adam(network.parameters(), lr=0.01)
        return lambda: mle._epoch(network, adam, tokens, 1, settings, CPU)

    bare, *epochs = best_seconds(
        [lambda: [bare_step() for _ in range(PRETRAINING.updates)], epoch("float32"), epoch("bfloat16")],
        repeats,
    )
    seconds = dict(zip(("float32", "bfloat16"), epochs, strict=True))
    ours = seconds[PRECISION]
    characters = PRETRAINING.updates * BATCH * LENGTH
    flop = 3 * 2 * characters * (4 * HIDDEN * (EMBEDDING + HIDDEN) + HIDDEN * VOCABULARY)
    yield Line(f"pre-training in {PRECISION}, characters/s", f"{characters / ours:,.0f}")
    yield at_least(f"pre-training over a bare nn.LSTM step in {PRECISION}, rate", bare / ours, 0.6)
    yield Line(f"pre-training, share of the {PRECISION} limit", f"{flop / ours / limit[PRECISION]:.2f}")
    ratio = seconds["float32"] / seconds["bfloat16"]
    yield Line("pre-training, bfloat16 over float32, rate", f"{ratio:.2g}")


def autocast() -> torch.autocast:
    """In the precision of this machine."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=PRECISION == "bfloat16")


class Bare(nn.Module):
    """Embedding, LSTM, linear, as in a tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.output = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits."""
        return self.output(self.lstm(self.embedding(tokens))[0])


BARE = Bare()
BARE_ADAM = torch.optim.Adam(BARE.parameters(), lr=0.01)
SAME_BATCH = torch.randint(VOCABULARY, (BATCH, LENGTH))


def bare_step() -> None:
    """Forward, backward, Adam on one batch that is always there."""
    with autocast():
        logits = BARE(SAME_BATCH)
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), SAME_BATCH.flatten())
    BARE_ADAM.zero_grad(set_to_none=True)
    loss.backward()
    BARE_ADAM.step()


def precision_lines() -> Iterator[Line]:
    """The same weights, trained for some updates on the bundled text, evaluated in both precisions."""
    characters = np.frombuffer(b"".join(read_chunks(BUNDLED)), np.uint8)
    tokens, network = np.where(characters == ord(" "), 0, characters - ord("a") + 1), language_model()
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    mle._epoch(network, adam, tokens[:-100_000], 1, replace(PRETRAINING, updates=500), CPU)
    held_out = tokens[-100_000:].reshape(100, -1)
    model = Lstm(network, CPU)
    exact, _ = model.surprisal(model.start(len(held_out)), held_out)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded, _ = model.surprisal(model.start(len(held_out)), held_out)
    yield at_most(
        "bits of the same weights, difference between bfloat16 and float32",
        abs(rounded.mean() - exact.mean()),
        0.001,
    )


@torch.no_grad()
def naive_rewards(
    policy: LanguageModel, discriminator: Discriminator, samples: Tensor, random: torch.Generator
) -> Tensor:
    """One generation from the start per prefix and repeat, as the published code does; one repeat."""
    columns = []
    for given in range(1, samples.shape[1]):
        token, state, tokens = torch.full_like(samples[:, :1], START), None, []
        for position in range(samples.shape[1]):
            logits, state = policy(token, state)
            drawn = rollout.draw(logits[:, 0], random)[:, None]
            token = samples[:, position : position + 1] if position < given else drawn
            tokens.append(token)
        columns.append(discriminator.real(torch.cat(tokens, dim=1)))
    return torch.stack([*columns, discriminator.real(samples)], dim=1)


def rollout_lines(limit: dict[str, float], repeats: int) -> Iterator[Line]:
    """All prefixes and repeats in one batch against one generation each.

    Two loops are naive: that of the published code generates 64 sequences at a time for one prefix length
    and repeat; the plainest generates one sequence for one prefix and repeat. One repeat of the former, and
    one repeat of one sequence of the latter, are timed.
    """
    policy, discriminator = language_model().eval(), Discriminator(VOCABULARY, LENGTH).eval()
    random = torch.Generator().manual_seed(1)
    samples = rollout.sample(policy, BATCH, LENGTH, random)

    def timed(function: Callable[..., Tensor], *arguments: object) -> Callable[[], None]:
        def run() -> None:
            with autocast():
                function(policy, discriminator, *arguments, random)

        return run

    batched, naive, one_by_one = best_seconds(
        [
            timed(rollout.rewards, samples, REPEATS),
            timed(naive_rewards, samples),
            timed(naive_rewards, samples[:1]),
        ],
        repeats,
    )
    yield Line(f"roll-outs of {REPEATS} repeats, seconds", f"{batched:.2f}")
    yield at_least(
        "naive roll-outs, a prefix and repeat at a time, over batched, time",
        BATCH * REPEATS * one_by_one / batched,
        10,
    )
    yield at_least(
        "naive roll-outs, 64 sequences at a time as published, over batched, time",
        REPEATS * naive / batched,
        10,
    )
    yield Line("... steps of the language model saved, the same for any machine", f"{steps_saved():.1f}")
    share = rollout_flop() / batched / limit[PRECISION]
    yield Line(f"roll-outs, share of the {PRECISION} limit", f"{share:.2f}")
    yield Line("... over the published loop at that limit, time", f"{REPEATS * naive / batched / share:.1f}")


def steps_saved() -> float:
    """Rows that the naive loop advances over those that are advanced here; both score as many sequences."""
    return (LENGTH - 1) * LENGTH / sum(range(1, LENGTH - 1))


def rollout_flop() -> float:
    """Of all roll-outs of a batch: steps of the language model, and forward passes of the discriminator."""
    steps = REPEATS * BATCH * sum(range(1, LENGTH - 1))
    scored = BATCH * (REPEATS * (LENGTH - 1) + 1)
    step = 4 * HIDDEN * (EMBEDDING + HIDDEN) + HIDDEN * VOCABULARY
    return 2 * (steps * step + scored * (2 * FEATURES**2 + added_rows()))


def adversarial_lines(limit: dict[str, float], repeats: int) -> Iterator[Line]:
    """What an adversarial epoch is made of: updates of the discriminator, sampling, one policy step."""
    players = seqgan.Players.from_generator(language_model(), VOCABULARY, ADVERSARIAL, CPU)
    trainer = seqgan.Trainer(players, text(500_000), text(500_000), ADVERSARIAL, CPU)
    sequences = torch.randint(VOCABULARY, (BATCH, LENGTH))
    labels = torch.arange(BATCH) % 2
    random = torch.Generator().manual_seed(1)
    update, highway, adam, fakes, policy = best_seconds(
        [
            lambda: [trainer._discriminator_update(sequences, labels) for _ in range(10)],
            highway_products,
            lambda: [players.discriminator_adam.step() for _ in range(10)],
            lambda: trainer._fakes(ADVERSARIAL.sequences, random),
            lambda: trainer.policy_step(random),
        ],
        repeats,
    )
    epoch = UPDATES_PER_EPOCH * update / 10 + ADVERSARIAL.rounds * fakes + policy
    yield Line("one adversarial epoch of the paper, seconds (4,680 updates; aim: 60)", f"{epoch:.0f}")
    yield Line("... share of the discriminator's updates", f"{UPDATES_PER_EPOCH * update / 10 / epoch:.2f}")
    yield Line("discriminator update, milliseconds", f"{update * 100:.1f}")
    yield Line("... share of the highway layer's three products alone", f"{highway / update:.2f}")
    yield Line("... share of Adam", f"{adam / update:.2f}")
    rate = 10 * discriminator_flop() / update
    yield Line(f"discriminator update, share of the {PRECISION} limit", f"{rate / limit[PRECISION]:.2f}")


def denormal_lines() -> Iterator[Line]:
    """Updates on one class at a time, as the published code orders them: soon the verdict is certain.

    On one thread, since others keep the mode in which they started.
    """
    threads, sequences = torch.get_num_threads(), torch.randint(VOCABULARY, (BATCH, LENGTH))

    def updates(flush: bool) -> Callable[[], None]:
        def run() -> None:
            torch.set_flush_denormal(flush)
            torch.manual_seed(1)
            players = seqgan.Players.from_generator(language_model(), VOCABULARY, ADVERSARIAL, CPU)
            trainer = seqgan.Trainer(players, text(500_000), text(500_000), ADVERSARIAL, CPU)
            for label in (1, 0):
                for _ in range(UPDATES_OF_A_CLASS):
                    trainer._discriminator_update(sequences, torch.full((BATCH,), label))

        return run

    torch.set_num_threads(1)
    kept, flushed = best_seconds([updates(flush=False), updates(flush=True)], 1)
    use_threads(threads)
    yield Line(
        "discriminator, one class at a time: with denormal numbers over without", f"{kept / flushed:.1f}"
    )


def highway_products() -> None:
    """Forward, gradient of the input and of the weights, ten times: no update can take less."""
    inputs, weights, outputs = (
        torch.ones(shape, dtype=getattr(torch, PRECISION))
        for shape in ((BATCH, FEATURES), (2 * FEATURES, FEATURES), (BATCH, 2 * FEATURES))
    )
    for _ in range(10):
        inputs @ weights.T
        outputs @ weights
        outputs.T @ inputs


def discriminator_flop() -> float:
    """Of one update: three products of the highway layer; every match adds its rows, there and back."""
    return 2 * BATCH * (3 * FEATURES * 2 * FEATURES + added_rows())


def added_rows() -> int:
    """Numbers that all matches of a sequence add up."""
    return sum(
        filters * width * (LENGTH - width + 1) for filters, widths in WIDTHS.items() for width in widths
    )


def at_least(quantity: str, ratio: float, limit: float) -> Line:
    """A ratio with a lower limit."""
    return Line(quantity, f"{ratio:.2f}", f"at least {limit:g}", ratio >= limit)


def at_most(quantity: str, value: float, limit: float) -> Line:
    """A small number with an upper limit."""
    return Line(quantity, f"{value:.1g}", f"at most {limit:g}", value <= limit)


def lines(repeats: int) -> Iterator[Line]:
    """All rows of the table."""
    limit = limits(repeats)
    yield from limit_lines(limit)
    yield from pretraining_lines(limit, repeats)
    yield from precision_lines()
    yield from rollout_lines(limit, repeats)
    yield from adversarial_lines(limit, repeats)
    yield from denormal_lines()


def run(description: str, lines: Callable[[int], Iterator[Line]]) -> None:
    """Print the table of a benchmark of networks as it is measured."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch (all cores)")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each comparison (5)")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    print(f"Threads: {arguments.threads}\n")
    print_table(lines(arguments.repeats))


if __name__ == "__main__":
    run(__doc__, lines)
