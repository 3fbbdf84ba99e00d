"""From a stream of bytes to three memory-mapped token files and the alphabet that names their ids.

The text is read once. Its tokens are first numbered provisionally (bytes, code points, or words in order
of appearance) in a scratch file; once the length is known, the train part fixes the alphabet, and the
scratch ids are mapped to final ids: 0 is the most frequent token of the train part. Memory is that of one
chunk, whatever the length of the text.
"""

import hashlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path

import numpy as np

from ganlm.files import REMEDY, complete, read_json
from ganlm.tokens import Tokenizer, tokenizer

PARTS = ("train", "valid", "test")
CHUNK_TOKENS = 1 << 22


@dataclass(frozen=True)
class CorpusSettings:
    """What text is wanted and how it is cut."""

    unit: str = "character"
    alphabet: str = "text8"
    vocabulary: int | None = None
    split: tuple[float, ...] = (0.9, 0.05, 0.05)


@dataclass(frozen=True)
class Alphabet:
    """Which symbol an id stands for."""

    symbols: tuple[str, ...]
    unit: str = "character"
    unknown: int | None = None

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def separator(self) -> str:
        """What stands between two tokens in running text."""
        return " " if self.unit == "word" else ""

    def decode(self, ids: Iterable[int]) -> str:
        """Running text of `ids`."""
        return self.separator.join(self.symbols[token] for token in ids)


@dataclass(frozen=True)
class Corpus:
    """What the other stages need to know of the token files."""

    alphabet: Alphabet
    tokens: dict[str, int]
    unknown_share: dict[str, float]
    sha256: dict[str, str]

    def to_json(self) -> dict:
        """Plain data."""
        return asdict(self)

    @classmethod
    def load(cls, path: Path | str) -> "Corpus":
        """From a file that holds what `to_json` gave."""
        names = [field.name for field in fields(cls)]
        found = read_json(path, *names)
        try:
            alphabet = Alphabet(**found["alphabet"] | {"symbols": tuple(found["alphabet"]["symbols"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} describes no alphabet ({error}): {REMEDY}") from None
        return cls(**{name: found[name] for name in names} | {"alphabet": alphabet})


def split_corpus(chunks: Iterable[bytes], settings: CorpusSettings, paths: dict[str, Path]) -> Corpus:
    """Write the token file of each part to its path, and describe them."""
    reader = tokenizer(settings.unit, settings.alphabet)
    with tempfile.TemporaryFile(dir=paths["train"].parent) as scratch:
        length = _write_scratch(reader.read(chunks), scratch)
        sizes = part_sizes(length, settings.split)
        provisional = np.memmap(scratch, reader.dtype, "r", shape=(length,))
        train_counts = _histogram(provisional[: sizes[0]], reader)
        alphabet, final_ids = _alphabet(train_counts, reader, settings)
        starts = itertools.accumulate(sizes, initial=0)
        unknown, digests = {}, {}
        for part, start, size in zip(PARTS, starts, sizes, strict=False):
            source = provisional[start : start + size]
            with complete(paths[part]) as path:
                unknown[part], digests[part] = _write_part(path, source, final_ids, alphabet)
    return Corpus(alphabet, dict(zip(PARTS, sizes, strict=True)), unknown, digests)


def part_sizes(length: int, fractions: Sequence[float]) -> tuple[int, ...]:
    """Tokens of each part: whole tokens, cut by position, the remainder going to the last part."""
    sizes = [int(Fraction(str(fraction)) * length) for fraction in fractions[:-1]]
    sizes.append(length - sum(sizes))
    if min(sizes) < 1:
        raise ValueError(
            f"the corpus has {length:,} tokens, too few to split into parts of {list(fractions)}: "
            "use a longer text or other fractions in corpus.split"
        )
    return tuple(sizes)


def load_tokens(path: Path) -> np.ndarray:
    """A token file, mapped rather than read: what is mapped is never unpickled, so no file can run code."""
    try:
        tokens = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no token file ({error}): {REMEDY}") from None
    if tokens.ndim != 1 or tokens.dtype.kind != "u":
        raise ValueError(f"{path} holds {tokens.dtype} of shape {tokens.shape}, no tokens: {REMEDY}")
    return tokens


def _write_scratch(arrays: Iterable[np.ndarray], scratch: object) -> int:
    length = 0
    for array in arrays:
        scratch.write(memoryview(np.ascontiguousarray(array)).cast("B"))
        length += len(array)
    if length == 0:
        raise ValueError("the corpus is empty: corpus.path must name a file with text in it")
    scratch.flush()
    return length


def _pieces(tokens: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(tokens), CHUNK_TOKENS):
        yield tokens[start : start + CHUNK_TOKENS]


def _histogram(tokens: np.ndarray, reader: Tokenizer) -> np.ndarray:
    counts = np.zeros(reader.size, np.int64)
    for piece in _pieces(tokens):
        counts += np.bincount(piece, minlength=reader.size)
    return counts


def _alphabet(
    train_counts: np.ndarray, reader: Tokenizer, settings: CorpusSettings
) -> tuple[Alphabet, np.ndarray]:
    """The alphabet of the train part, and the final id of every provisional id."""
    counts = {reader.symbol(i): int(train_counts[i]) for i in np.flatnonzero(train_counts)}
    for symbol in reader.required:
        counts.setdefault(symbol, 0)
    kept = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    if settings.vocabulary:
        kept = [symbol for symbol in kept if symbol != reader.unknown][: settings.vocabulary - 1]
        kept_set = set(kept)
        rare = sum(count for symbol, count in counts.items() if symbol not in kept_set)
        counts[reader.unknown] = rare
        kept = sorted([*kept, reader.unknown], key=lambda symbol: (-counts[symbol], symbol))
    index = {symbol: i for i, symbol in enumerate(kept)}
    unknown = index.get(reader.unknown)
    ids = [index.get(reader.symbol(i), unknown) for i in reader.provisional_ids]
    final_ids = np.zeros(reader.size, np.min_scalar_type(len(kept) - 1))
    final_ids[reader.provisional_ids] = ids
    return Alphabet(tuple(kept), settings.unit, unknown), final_ids


def _write_part(
    path: Path, source: np.ndarray, final_ids: np.ndarray, alphabet: Alphabet
) -> tuple[float, str]:
    """Map one part to final ids; return its share of unknown tokens and the digest of its ids.

    Written, not mapped: on a full disk a write fails with a reason, whereas a mapped page kills the process.
    """
    digest, unknown = hashlib.sha256(), 0
    header = {"descr": final_ids.dtype.str, "fortran_order": False, "shape": (len(source),)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in _pieces(source):
            ids = final_ids[piece]
            file.write(ids)
            digest.update(ids)
            if alphabet.unknown is not None:
                unknown += int(np.count_nonzero(ids == alphabet.unknown))
    return unknown / len(source), digest.hexdigest()
