import hashlib
import lzma
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ganlm.corpus import PARTS, Alphabet, Corpus, CorpusSettings, load_tokens, part_sizes, split_corpus
from ganlm.files import write_json
from ganlm.tokens import TEXT8, UNKNOWN_CHARACTER, UNKNOWN_WORD, Words, first_characters, tokenizer

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow/scripts"
TEXT = b"the quick brown fox jumps over the lazy dog "
TEXT8_CHARACTERS = CorpusSettings()
OBSERVED = CorpusSettings(alphabet="observed")
HALVES = (0.5, 0.25, 0.25)


def chunked(text: bytes, size: int):
    return (text[start : start + size] for start in range(0, len(text), size))


def split(folder: Path, text: bytes, wanted=TEXT8_CHARACTERS, chunk=7):
    """The corpus, and the ids of its parts."""
    paths = {part: folder / f"{part}.npy" for part in PARTS}
    corpus = split_corpus(chunked(text, chunk), wanted, paths)
    return corpus, {part: load_tokens(path) for part, path in paths.items()}


def words(vocabulary=None, parts=HALVES):
    return CorpusSettings(unit="word", vocabulary=vocabulary, split=parts)


def refusal(text: bytes, wanted=TEXT8_CHARACTERS, chunk=7):
    """The one sentence with which a text is refused."""
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        list(tokenizer(wanted.unit, wanted.alphabet).read(chunked(text, chunk)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("length", "sizes"),
    [
        (74_081_952, (66_673_756, 3_704_097, 3_704_099)),
        (100_000_000, (90_000_000, 5_000_000, 5_000_000)),
        (20, (18, 1, 1)),
        (39, (35, 1, 3)),
    ],
)
def test_parts_are_rounded_down_and_the_rest_goes_to_test(length, sizes):
    assert part_sizes(length, (0.9, 0.05, 0.05)) == sizes


def test_part_sizes_use_decimal_fractions():
    """In binary, 0.29 * 100 is 28.999999999999996."""
    assert part_sizes(100, (0.29, 0.57, 0.14)) == (29, 57, 14)


@pytest.mark.parametrize("length", [1, 19])
def test_a_text_too_short_to_split_is_refused(tmp_path, length):
    with pytest.raises(ValueError, match=rf"has {length} tokens, too few .* corpus\.split"):
        split(tmp_path, b"a" * length)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wanted", "text"),
    [(TEXT8_CHARACTERS, b""), (OBSERVED, b""), (words(), b""), (words(), b" \n" * 20)],
)
def test_a_text_without_tokens_is_refused(tmp_path, wanted, text):
    with pytest.raises(ValueError, match=r"empty: corpus\.path"):
        split(tmp_path, text, wanted)


def test_the_bundled_sample_is_the_documented_one(tmp_path):
    text = lzma.decompress((ROOT / "resources/text8-2m.xz").read_bytes())
    documented = re.search(r"sha256 `([0-9a-f]{64})`", (ROOT / "resources/README.md").read_text()).group(1)
    assert hashlib.sha256(text).hexdigest() == documented
    assert text.startswith(b" anarchism originated as a term of abuse first used against")
    corpus, parts = split(tmp_path, text, chunk=1 << 16)
    assert corpus.tokens == {"train": 1_800_000, "valid": 100_000, "test": 100_000}
    train = text[:1_800_000]
    by_frequency = sorted(TEXT8, key=lambda letter: -train.count(letter.encode()))
    assert corpus.alphabet.symbols == tuple(by_frequency)
    assert corpus.alphabet.symbols[0] == " "
    assert b"".join(corpus.alphabet.decode(parts[part]).encode() for part in PARTS) == text
    assert {array.dtype for array in parts.values()} == {np.dtype(np.uint8)}
    assert corpus.unknown_share == dict.fromkeys(PARTS, 0.0)
    for part, array in parts.items():
        assert isinstance(array, np.memmap)
        assert corpus.sha256[part] == hashlib.sha256(array.tobytes()).hexdigest()


def test_letters_that_the_text_lacks_come_last_in_alphabetic_order(tmp_path):
    corpus, _ = split(tmp_path, b" ba" * 20 + b" " * 20)
    assert corpus.alphabet.symbols == (" ", "a", "b", *TEXT8[3:])
    assert corpus.alphabet.unknown is None


@pytest.mark.parametrize("chunk", [1, 5, 44, 1000])
@pytest.mark.parametrize("offset", [0, 43, 44, 1000, 1319])
def test_the_first_byte_outside_text8_is_named(chunk, offset):
    text = bytearray(TEXT * 30)
    text[offset:] = b"Q" + bytes(text[offset + 1 :]).replace(b"q", b"Z")
    message = refusal(bytes(text), chunk=chunk)
    assert message.startswith(f"byte b'Q' at offset {offset:,} ")
    assert "corpus.alphabet: observed" in message


@pytest.mark.parametrize("byte", [b"\n", b"\xc3", b"0", b"\x00", b"A"])
def test_only_lower_case_letters_and_space_are_text8(byte):
    assert f"byte {byte!r} at offset 44 " in refusal(TEXT + byte)


@given(st.text(min_size=8, max_size=80), st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_any_text_survives_any_chunks(tmp_path_factory, text, chunk):
    """Round trip: the train part holds every character, so nothing is unknown to the others."""
    train = "".join(sorted(set(text))) + text
    whole = train + train
    corpus, parts = split(
        tmp_path_factory.mktemp("corpus"),
        whole.encode(),
        CorpusSettings(alphabet="observed", split=HALVES),
        chunk,
    )
    assert "".join(corpus.alphabet.decode(parts[part]) for part in PARTS) == whole
    counts = [train.count(symbol) for symbol in corpus.alphabet.symbols]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("chunk", range(1, 6))
def test_invalid_utf8_is_named_with_its_offset(chunk):
    for prefix in ("", "aé€😀", "€€€"):
        text = prefix.encode() + b"\xff" + b"abc"
        message = refusal(text, OBSERVED, chunk)
        assert "not UTF-8" in message
        assert f"0xff at offset {len(prefix.encode())};" in message


@pytest.mark.parametrize("chunk", range(1, 6))
def test_a_broken_character_is_found_where_it_starts(chunk):
    assert "0xe2 at offset 3;" in refusal(b"abc\xe2\x82x", OBSERVED, chunk)
    assert "ends inside a character" in refusal(b"abc\xe2\x82", OBSERVED, chunk)
    assert "ends inside a character" in refusal(b"a b \xf0", words(), chunk)


@given(st.text(max_size=30), st.integers(0, 35), st.integers(1, 9))
def test_first_characters_count_characters_and_not_bytes(text, limit, chunk):
    kept = b"".join(first_characters(chunked(text.encode(), chunk), limit))
    assert kept.decode() == text[:limit]


def test_first_characters_read_no_further_than_needed():
    def chunks():
        yield b"abcd"
        yield b"efgh"
        raise AssertionError("the third chunk was not needed")

    assert b"".join(first_characters(chunks(), 6)) == b"abcdef"


def test_characters_unseen_in_training_become_one_unknown(tmp_path):
    text = "aaabbc" + "é" * 6 + "abxx" + "yzaü"
    wanted = CorpusSettings(alphabet="observed", split=(0.6, 0.2, 0.2))
    corpus, parts = split(tmp_path, text.encode(), wanted, chunk=2)
    assert corpus.alphabet.symbols == ("é", "a", "b", "c", UNKNOWN_CHARACTER)
    assert corpus.alphabet.unknown == 4
    assert corpus.tokens == {"train": 12, "valid": 4, "test": 4}
    assert parts["valid"].tolist() == [1, 2, 4, 4]
    assert parts["test"].tolist() == [4, 4, 1, 4]
    assert corpus.unknown_share == {"train": 0.0, "valid": 0.5, "test": 0.75}


def test_a_cap_on_characters_keeps_the_most_frequent(tmp_path):
    text = b"aaaaabbbbccd" + b"abcd" + b"dddd"
    wanted = CorpusSettings(alphabet="observed", vocabulary=3, split=(0.6, 0.2, 0.2))
    corpus, parts = split(tmp_path, text, wanted)
    assert corpus.alphabet.symbols == ("a", "b", UNKNOWN_CHARACTER)
    assert corpus.unknown_share == {"train": 0.25, "valid": 0.5, "test": 1.0}
    assert parts["test"].tolist() == [2, 2, 2, 2]


@given(
    st.lists(st.sampled_from(["a", "bc", "übermut", "x" * 30, "<unk>", "字"]), min_size=4, max_size=30),
    st.lists(st.sampled_from([" ", "\n", "\t ", "\u3000", "\r\n\n"]), min_size=30, max_size=30),
    st.integers(1, 9),
    st.booleans(),
)
def test_words_do_not_depend_on_chunks_or_kind_of_white_space(tokens, spaces, chunk, ends_with_space):
    text = (
        "".join(space + token for token, space in zip(tokens, spaces, strict=False)) + " " * ends_with_space
    )
    reader = Words()
    ids = np.concatenate(list(reader.read(chunked(text.encode(), chunk))))
    assert [reader.symbol(i) for i in ids] == tokens
    assert reader.size == len(set(tokens))


def test_words_outside_the_vocabulary_become_unk(tmp_path):
    text = b"a a a a b b b c c d  a b c d b  e e a d c"
    corpus, parts = split(tmp_path, text, words(vocabulary=3))
    assert corpus.alphabet == Alphabet(("a", UNKNOWN_WORD, "b"), "word", 1), "<unk> stands for c and d"
    assert corpus.alphabet.decode(parts["train"]) == "a a a a b b b <unk> <unk> <unk>"
    assert corpus.alphabet.decode(parts["test"]) == "<unk> <unk> a <unk> <unk>"
    assert corpus.unknown_share == {"train": 0.3, "valid": 0.4, "test": 0.8}


def test_without_a_cap_every_word_of_the_train_part_is_kept(tmp_path):
    corpus, parts = split(tmp_path, b"b a b c a d e b", words())
    assert corpus.alphabet.symbols == ("b", "a", "c", UNKNOWN_WORD)
    assert corpus.alphabet.decode(parts["valid"]) == "a <unk>"
    assert corpus.unknown_share["test"] == 0.5


def test_a_cap_above_the_number_of_words_changes_nothing(tmp_path):
    text = b"b a b c a d e b"
    assert split(tmp_path, text, words(100))[0] == split(tmp_path, text, words())[0]


@pytest.mark.parametrize("cap", [None, 4])
def test_unk_written_in_the_text_is_the_unknown_word(tmp_path, cap):
    corpus, parts = split(tmp_path, b"<unk> <unk> <unk> a a b <unk> c a <unk> b b", words(cap))
    assert corpus.alphabet.symbols.count(UNKNOWN_WORD) == 1
    assert corpus.alphabet.symbols == (UNKNOWN_WORD, "a", "b")
    assert corpus.alphabet.decode(parts["valid"]) == "<unk> <unk> a"
    assert corpus.unknown_share["train"] == 0.5


@pytest.mark.parametrize(
    ("symbols", "dtype"), [(256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.uint32)]
)
def test_ids_take_as_little_room_as_the_vocabulary_allows(tmp_path, symbols, dtype):
    names = [f"w{i}" for i in range(symbols - 1)]
    text = " ".join(names + names)
    corpus, parts = split(tmp_path, text.encode(), words(), chunk=1 << 12)
    assert len(corpus.alphabet) == symbols
    assert {array.dtype for array in parts.values()} == {np.dtype(dtype)}
    assert " ".join(corpus.alphabet.decode(parts[part]) for part in PARTS) == text


def test_a_corpus_survives_json(tmp_path):
    corpus, _ = split(tmp_path, "aé€ aé€ aé€😀".encode() * 5, OBSERVED)
    write_json(tmp_path / "corpus.json", corpus.to_json())
    assert Corpus.load(tmp_path / "corpus.json") == corpus


class Intruder:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.write_text, ("I was here",)


def test_token_files_cannot_run_code(tmp_path):
    trace, pickled, array = (tmp_path / name for name in ("trace", "pickled.npy", "array.npy"))
    pickled.write_bytes(pickle.dumps(Intruder(trace)))
    np.save(array, np.array([Intruder(trace)], object), allow_pickle=True)
    for path in (pickled, array):
        with pytest.raises(ValueError, match=r"magic string|Python objects"):
            load_tokens(path)
    assert not trace.exists()


def test_a_refused_text_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="outside"):
        split(tmp_path, TEXT * 30 + b"!")
    assert list(tmp_path.iterdir()) == []


SPLIT_IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from ganlm.corpus import CorpusSettings, split_corpus
unit, alphabet, limit, folder = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
try:
    bytearray(int(limit))
except MemoryError:
    pass
else:
    sys.exit("the limit is not enforced")
letter = "o" if alphabet == "text8" else chr(0xF6)
sentence = f"the quick brown fox jumps over the lazy d{letter}g ".encode()
chunk = sentence * (2**22 // len(sentence))
paths = {part: Path(folder, part) for part in ("train", "valid", "test")}
corpus = split_corpus((chunk for _ in range(13)), CorpusSettings(unit, alphabet), paths)
print(sum(corpus.tokens.values()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits memory on Linux only")
@pytest.mark.parametrize(
    ("unit", "alphabet"), [("character", "text8"), ("character", "observed"), ("word", "text8")]
)
def test_a_text_of_54_megabytes_takes_little_memory(tmp_path, unit, alphabet):
    run = subprocess.run(
        [sys.executable, "-c", SPLIT_IN_LITTLE_MEMORY, unit, alphabet, str(300 << 20), tmp_path],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > (10_000_000 if unit == "word" else 50_000_000)
