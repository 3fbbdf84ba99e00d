"""Speed of the evaluator, as ratios of two things measured in the same run.

    python benchmarks/evaluator.py
    python benchmarks/evaluator.py --text text8.zip

Prints a Markdown table: what was compared, the ratio, and what is required of it. Times are the shortest of
several turns; the functions that are compared take turns. Explicit models score the test part, repeated or
cut to --tokens. Memory is the peak of a process of its own, the interpreter and its libraries included.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "scripts"))

from bench_generator import NGramGenerator
from timing import best_seconds, isolated
from workbench import DRAWS, EVALUATION, Bench, Line, at_least, at_most, print_table

from ganlm import measure_explicit, measure_sampled
from ganlm.corpus import PARTS, Corpus, CorpusSettings, load_tokens, split_corpus
from ganlm.generator import Explicit, Surroundings
from ganlm.measurement import SAMPLE, Row, Settings, Task
from ganlm.models.command import Command
from ganlm.models.lstm import Architecture, LanguageModel, Lstm
from ganlm.models.ngram import NGram
from ganlm.models.ngram import Settings as NGramSettings
from ganlm.resume import Journal
from ganlm.textfile import read_chunks

SLICE, SLICE_WINDOW = 5000, 100
LSTM_TOKENS = 50_000

Pieces = Sequence[tuple[Sequence[int], np.ndarray]]


def ngram_lines(bench: Bench, order: int) -> Iterator[Line]:
    """N-grams: their exact pass is so short that one binomial number per token is a good part of it."""
    tokens = np.resize(bench.part("test"), bench.tokens)
    yield from explicit_lines(bench, f"{order}-gram", bench.model(order), tokens, sampled_limit=None)


def lstm_lines(bench: Bench) -> Iterator[Line]:
    """A network of the paper's size; its weights do not matter for speed."""
    torch.set_num_threads(1)
    network = LanguageModel(bench.vocabulary, Architecture(embedding=8, hidden=512))
    tokens = np.resize(bench.part("test"), LSTM_TOKENS)
    yield from explicit_lines(
        bench, "LSTM 8/512", Lstm(network, torch.device("cpu")), tokens, sampled_limit=0.1
    )


def explicit_lines(
    bench: Bench, name: str, model: Explicit, tokens: np.ndarray, sampled_limit: float | None
) -> Iterator[Line]:
    """What the columns of an explicit model cost on top of its exact pass."""
    exact = bench.task("explicit", tokens)
    columns = {n: replace(exact, settings=_plug_in(n)) for n in (200, DRAWS, 20_000)}
    pieces = [(blocks, np.exp2(-bits)) for blocks, bits in measure_explicit.gold_bits(model, exact)]
    p = np.concatenate([piece for _, piece in pieces])
    pass_seconds, *both, expectation, binomial, real = best_seconds(
        [
            lambda: measure_explicit.measure(model, exact, None, 1),
            *(lambda task=task: _both_columns(task, pieces) for task in columns.values()),
            lambda: [_expected_rows(columns[DRAWS], blocks, piece) for blocks, piece in pieces],
            lambda: np.random.default_rng(1).binomial(DRAWS, p),
            lambda: _real_pass(model, tokens[:SLICE], np.random.default_rng(1)),
        ],
        bench.repeats,
    )
    over = dict(zip(columns, both, strict=True))
    sampled = over[DRAWS] - expectation
    yield Line(f"{name}: exact pass", f"{_nanoseconds(pass_seconds, tokens)} ns/token")
    yield at_most(f"{name}: closed-form column N={DRAWS} / exact pass", expectation / pass_seconds, 0.1)
    quantity = f"{name}: sampled column N={DRAWS} / exact pass"
    if sampled_limit is None:
        yield Line(quantity, f"{sampled / pass_seconds:.3f}")
    else:
        yield at_most(quantity, sampled / pass_seconds, sampled_limit)
    yield Line(
        f"{name}: sampled column / one `rng.binomial` per token",
        f"{sampled / binomial:.2f} "
        f"({_nanoseconds(sampled, tokens)} / {_nanoseconds(binomial, tokens)} ns/token)",
    )
    for n in (200, 20_000):
        yield Line(f"{name}: both columns, N={n} / N={DRAWS}", f"{over[n] / over[DRAWS]:.2f}", "about 1")
    passes = real / SLICE * DRAWS
    per_token = (pass_seconds + over[DRAWS]) / len(tokens)
    yield at_least(
        f"{name}: N={DRAWS} real passes (one on {SLICE} tokens, scaled) / exact pass with both columns",
        passes / per_token,
        1000,
    )


def _plug_in(draws: int) -> Settings:
    return replace(EVALUATION, estimators=("plug-in",), draws=draws)


def _both_columns(task: Task, pieces: Pieces) -> list[Row]:
    return [row for blocks, p in pieces for row in measure_explicit._fixed_draw_rows(task, blocks, p)]


def _expected_rows(task: Task, blocks: Sequence[int], p: np.ndarray) -> list[Row]:
    expectation = task.estimator("plug-in").expectation(p)
    return list(task.rows(SAMPLE, "expected-plug-in", DRAWS, blocks, expectation))


def _real_pass(model: Explicit, tokens: np.ndarray, rng: np.random.Generator) -> int:
    """One pass of Algorithm 1: draw one token at every position and count the hits, windows side by side."""
    windows = tokens.reshape(-1, SLICE_WINDOW).astype(np.int64)
    hits = 0
    for position, p in model.distributions(windows):
        drawn = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
        hits += int((drawn == windows[:, position]).sum())
    return hits


def memory_lines(bench: Bench, order: int = 5, longer: int = 8) -> Iterator[Line]:
    """Peak memory of the exact pass with both columns, in N and in the length of the text."""
    short, long = bench.tokens, bench.tokens * longer
    peak = {
        (tokens, draws): isolated(_evaluate, bench, order, tokens, draws).megabytes
        for tokens, draws in ((short, 200), (short, 20_000), (long, 200))
    }
    base = peak[short, 200]
    yield Line(
        f"{order}-gram: peak memory, N=20000 / N=200",
        f"{peak[short, 20_000] / base:.2f} ({peak[short, 20_000]:.0f} / {base:.0f} MB)",
        "about 1",
    )
    yield Line(
        f"{order}-gram: peak memory, {long:,} / {short:,} tokens",
        f"{peak[long, 200] / base:.2f} ({peak[long, 200]:.0f} / {base:.0f} MB)",
        "about 1",
    )


def _evaluate(bench: Bench, order: int, tokens: int, draws: int) -> None:
    path = bench.folder / f"repeated-{tokens}.npy"
    np.save(path, np.resize(bench.part("test"), tokens))
    task = replace(bench.task("explicit", load_tokens(path)), settings=_plug_in(draws))
    measure_explicit.measure(bench.model(order), task, None, 1)


class Recorded(Command):
    """A command generator that remembers what was asked of it."""

    def __init__(self, command: Sequence[str], surroundings: Surroundings) -> None:
        super().__init__(command, 60, surroundings)
        self.asked: list[tuple] = []

    def draw_in_windows(
        self, windows: Sequence[np.ndarray], requests: Sequence[tuple[int, int, int]], seed: int
    ) -> list[np.ndarray]:
        """As a command generator does."""
        self.asked.append((windows, requests, seed % 2**53))
        return super().draw_in_windows(windows, requests, seed)


def command_lines(bench: Bench, order: int = 8, characters: int = 20_000) -> Iterator[Line]:
    """Capped IBS through the pipe, against the same generator called with the same requests."""
    path = bench.saved_model(order)
    program = [sys.executable, str(Path(__file__).with_name("bench_generator.py")), str(path), str(order)]
    task = bench.task("sampled", bench.part("test"), characters=characters, estimators=("ibs",))
    generator = Recorded(program, Surroundings(bench.corpus.alphabet))
    module = NGramGenerator(path, order, bench.vocabulary)
    rows: list[Row] = []

    def measure() -> None:
        generator.asked.clear()
        journal = Journal(bench.folder / "journal", time.perf_counter())
        rows[:] = measure_sampled.measure(generator, task, journal, 1)

    through_pipe, own = best_seconds([measure, lambda: _replay(module, generator.asked)], bench.repeats)
    generator.close()
    measured = sum(row.tokens for row in rows)
    requests = [request for _, batch, _ in generator.asked for request in batch]
    name = f"{order}-gram (Kneser-Ney) behind a pipe, IBS capped at {task.settings.cap}"
    yield at_most(f"{name}: wall time / generator's own time", through_pipe / own, 1.5)
    yield Line(
        f"{name}: generator / pipe and bookkeeping",
        f"{own / measured * 1e6:.0f} / {(through_pipe - own) / measured * 1e6:.0f} µs per character",
    )
    yield Line(
        f"{name}: draws per character, needed / asked for",
        f"{sum(row.drawn for row in rows) / measured:.1f} / "
        f"{sum(count for _, _, count in requests) / measured:.1f}",
        "15 to 30",
    )


def _replay(module: NGramGenerator, asked: Sequence[tuple]) -> None:
    shown = None
    for windows, requests, seed in asked:
        if windows is not shown:
            module.read(windows)
            shown = windows
        module.draw(requests, seed)


def shard_lines(bench: Bench, order: int = 5, shards: int = 8) -> Iterator[Line]:
    """One piece against many, one after the other."""
    model, tokens = bench.model(order), np.resize(bench.part("test"), bench.tokens)
    settings = {"estimators": ("plug-in", "ibs")}

    def evaluate(count: int) -> list[Row]:
        pieces = [bench.task("explicit", tokens, (i, count), **settings) for i in range(1, count + 1)]
        return sorted(row for task in pieces for row in measure_explicit.measure(model, task, None, 1))

    assert evaluate(1) == evaluate(shards), "sharding changes the rows"
    whole, divided = best_seconds([lambda: evaluate(1), lambda: evaluate(shards)], bench.repeats)
    yield Line(f"{order}-gram: rows of {shards} shards and of 1", "identical", "identical", True)
    yield Line(f"{order}-gram: time of {shards} shards in sequence / 1", f"{divided / whole:.2f}")


def corpus_lines(bench: Bench, megabytes: int = 100) -> Iterator[Line]:
    """The corpus stage on the text repeated to the size of text8, and an 8-gram from start to end."""
    text = bench.folder / "repeated.txt"
    symbols = np.frombuffer("".join(bench.corpus.alphabet.symbols).encode(), np.uint8)
    np.resize(symbols[bench.part("train")], megabytes * 10**6).tofile(text)
    split = isolated(_split, text, bench.folder / "split")
    hashed = isolated(_hash, text)
    yield Line(
        f"corpus: split and encode {megabytes} MB",
        f"{split.seconds:.1f} s, {megabytes / split.seconds:.0f} MB/s, peak {split.megabytes:.0f} MB",
        "a few seconds, well under 1 GB",
        split.seconds < 5 and split.megabytes < 1000,
    )
    yield Line(
        "corpus: split and encode / reading and SHA-256 alone", f"{split.seconds / hashed.seconds:.1f}"
    )
    train = bench.part("train")
    usage = isolated(_train_and_score, bench, 8)
    keys = isolated(_sort, len(train))
    yield Line(
        f"8-gram: train on {len(train):,} and score {len(bench.part('test')):,} tokens",
        f"{usage.seconds:.1f} s, peak {usage.megabytes:.0f} MB",
        "a minute and 4 GB on 67 million",
        usage.seconds < 60 and usage.megabytes < 4096,
    )
    yield Line(
        "8-gram: train and score / `np.sort` of one random 64-bit key per token",
        f"{usage.seconds / keys.seconds:.1f}",
    )


def _split(text: Path, folder: Path) -> Corpus:
    folder.mkdir(exist_ok=True)
    paths = {part: folder / f"{part}.npy" for part in PARTS}
    return split_corpus(read_chunks(text), CorpusSettings(), paths)


def _hash(text: Path) -> str:
    with text.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _train_and_score(bench: Bench, order: int) -> None:
    model = NGram.train(bench.part("train"), bench.vocabulary, NGramSettings(order))
    measure_explicit.measure(model, bench.task("explicit", bench.part("test")), None, 1)


def _sort(keys: int) -> None:
    np.random.default_rng(1).integers(2**62, size=keys).sort()


def _nanoseconds(seconds: float, tokens: Sequence[int]) -> str:
    return f"{seconds / len(tokens) * 1e9:.0f}"


def lines(bench: Bench) -> Iterator[Line]:
    """All rows of the table."""
    for order in (5, 8):
        yield from ngram_lines(bench, order)
    yield from lstm_lines(bench)
    yield from memory_lines(bench)
    yield from command_lines(bench)
    yield from shard_lines(bench)
    yield from corpus_lines(bench)


def main() -> None:
    """Print the table as it is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    bundled = Path(__file__).parents[1] / "resources" / "text8-2m.xz"
    parser.add_argument("--text", type=Path, default=bundled, help="text of [a-z ] (the bundled one)")
    parser.add_argument("--tokens", type=int, default=500_000, help="tokens that explicit models score")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each comparison (5)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder, _split(arguments.text, folder), arguments.tokens, arguments.repeats)
        print_table(lines(bench))


if __name__ == "__main__":
    main()
