"""The stage from a text file to token files and their description."""

import bz2
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import split_corpus

OUTPUTS = {"train": "train.npy", "valid": "valid.npy", "test": "test.npy", "corpus": "corpus.json"}
TEXT = "the quick brown fox jumps over the lazy dog " * 100
SETTINGS = {"characters": None, "unit": "character", "alphabet": "text8", "vocabulary": None}


def split(job: Callable, text: Path, **changes: object) -> Path:
    """Run the stage; returns the folder of its outputs."""
    params = {"corpus": SETTINGS | {"split": [0.8, 0.1, 0.1]} | changes, "code": {}}
    snakemake = job(inputs={"text": str(text)}, outputs=OUTPUTS, params=params)
    split_corpus.main(snakemake)
    return Path(snakemake.output.corpus).parent


def test_the_parts_are_the_text_and_space_is_0(job: Callable, tmp_path: Path):
    text = tmp_path / "text.bz2"
    text.write_bytes(bz2.compress(TEXT.encode()))
    folder = split(job, text, characters=1001)
    corpus = json.loads((folder / "corpus.json").read_text())
    symbols = corpus["alphabet"]["symbols"]
    parts = [np.load(folder / OUTPUTS[part]) for part in ("train", "valid", "test")]
    assert "".join(symbols[i] for i in np.concatenate(parts)) == TEXT[:1001]
    assert [len(part) for part in parts] == [800, 100, 101]
    assert corpus["tokens"] == {"train": 800, "valid": 100, "test": 101}
    assert (symbols[0], len(symbols)) == (" ", 27)
    counts = np.bincount(parts[0], minlength=27)
    assert list(counts) == sorted(counts, reverse=True)
    assert "split_corpus done" in (folder / "stage.log").read_text().splitlines()[-1]


def test_words_beyond_the_vocabulary_are_reported_as_unknown(job: Callable, tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("a b a c a b a d " * 100)
    folder = split(job, text, unit="word", vocabulary=3)
    corpus = json.loads((folder / "corpus.json").read_text())
    assert set(corpus["alphabet"]["symbols"]) == {"a", "b", "<unk>"}
    assert corpus["unknown_share"]["test"] == 0.25
    assert "25.0000% of the test part are unknown" in (folder / "stage.log").read_text()


def test_a_foreign_byte_fails_with_its_offset_and_leaves_nothing(job: Callable, tmp_path: Path):
    text = tmp_path / "text"
    text.write_text(TEXT[:500] + "Q" + TEXT)
    with pytest.raises(SystemExit) as failure:
        split(job, text)
    assert failure.value.code == 1
    assert "500" in (tmp_path / "stage.log").read_text().splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"text", "stage.log"}
