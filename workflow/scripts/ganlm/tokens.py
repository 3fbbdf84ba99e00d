"""Three ways to read a text: text8 characters, any UTF-8 characters, words between white space.

Each numbers its tokens provisionally while the text streams by; the corpus stage maps these numbers to
final ids once it knows the train part.
"""

import codecs
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

TEXT8 = " abcdefghijklmnopqrstuvwxyz"
UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"
UNKNOWN_WORD = "<unk>"


class Tokenizer(Protocol):
    """Numbers the tokens of a text, in one pass."""

    dtype: np.dtype
    required: tuple[str, ...]
    unknown: str | None

    def read(self, chunks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Provisional ids of the text, piece by piece."""

    @property
    def size(self) -> int:
        """All provisional ids are below this number."""

    @property
    def provisional_ids(self) -> np.ndarray:
        """The provisional ids that can occur."""

    def symbol(self, provisional_id: int) -> str:
        """The token behind a provisional id."""


class Text8Characters:
    """Bytes of [a-z ] and nothing else. The alphabet is fixed: a letter the text lacks keeps its id."""

    dtype = np.dtype(np.uint8)
    required = tuple(TEXT8)
    unknown = None
    size = 256
    provisional_ids = np.frombuffer(TEXT8.encode(), np.uint8)

    def read(self, chunks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """The bytes themselves, once checked."""
        allowed = np.zeros(256, bool)
        allowed[self.provisional_ids] = True
        offset = 0
        for chunk in chunks:
            ids = np.frombuffer(chunk, np.uint8)
            legal = allowed[ids]
            if not legal.all():
                first = int(np.argmin(legal))
                raise ValueError(
                    f"byte {chunk[first : first + 1]!r} at offset {offset + first:,} of the corpus is "
                    "outside [a-z ]: clean the text, or set `corpus.alphabet: observed`"
                )
            yield ids
            offset += len(ids)

    def symbol(self, provisional_id: int) -> str:
        """The character with that code."""
        return chr(provisional_id)


class ObservedCharacters:
    """Any UTF-8 text; what the train part lacks becomes one unknown symbol."""

    dtype = np.dtype(np.uint32)
    required = (UNKNOWN_CHARACTER,)
    unknown = UNKNOWN_CHARACTER
    size = 0x110000

    def __init__(self) -> None:
        self._seen = np.zeros(self.size, bool)

    def read(self, chunks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Code points."""
        for text in _decode(chunks):
            ids = np.frombuffer(text.encode("utf-32-le"), np.uint32)
            self._seen[ids] = True
            yield ids

    @property
    def provisional_ids(self) -> np.ndarray:
        """Code points that occur anywhere in the text."""
        return np.flatnonzero(self._seen)

    def symbol(self, provisional_id: int) -> str:
        """The character with that code point."""
        return chr(provisional_id)


class Words:
    """What stands between white space; rare and unseen words become one unknown word."""

    dtype = np.dtype(np.uint32)
    required = (UNKNOWN_WORD,)
    unknown = UNKNOWN_WORD

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []

    def read(self, chunks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Numbers in order of first appearance."""
        rest = ""
        for text in _decode(chunks):
            text = rest + text
            words = text.split()
            rest = words.pop() if words and not text[-1].isspace() else ""
            yield self._number(words)
        yield self._number([rest] if rest else [])

    def _number(self, words: list[str]) -> np.ndarray:
        for word in words:
            if word not in self._ids:
                self._ids[word] = len(self._words)
                self._words.append(word)
        return np.fromiter(map(self._ids.__getitem__, words), self.dtype, len(words))

    @property
    def size(self) -> int:
        """Number of distinct words."""
        return len(self._words)

    @property
    def provisional_ids(self) -> np.ndarray:
        """All words of the text."""
        return np.arange(self.size)

    def symbol(self, provisional_id: int) -> str:
        """The word with that number."""
        return self._words[provisional_id]


def tokenizer(unit: str, alphabet: str) -> Tokenizer:
    """The reader for a unit (character, word) and an alphabet (text8, observed)."""
    if unit == "word":
        return Words()
    return Text8Characters() if alphabet == "text8" else ObservedCharacters()


def first_characters(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The first `limit` characters of a UTF-8 text, in bytes.

    A byte starts a character unless its two high bits are 10.
    """
    for chunk in chunks:
        starts = np.flatnonzero(np.frombuffer(chunk, np.uint8) & 0xC0 != 0x80)
        if len(starts) > limit:
            yield chunk[: starts[limit]]
            return
        limit -= len(starts)
        yield chunk


def _decode(chunks: Iterable[bytes]) -> Iterator[str]:
    """UTF-8 text; a character may be cut between two chunks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    for chunk in chunks:
        pending = len(decoder.getstate()[0])
        try:
            yield decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the corpus is not UTF-8: byte 0x{error.object[error.start]:02x} at offset "
                f"{offset - pending + error.start:,}; convert the file first"
            ) from None
        offset += len(chunk)
    if decoder.getstate()[0]:
        raise ValueError(f"the corpus is not UTF-8: it ends inside a character, at byte {offset:,}")
