"""The stage from token files to a saved n-gram model."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import train_ngram

from ganlm.corpus import CorpusSettings, load_tokens, split_corpus
from ganlm.files import write_json
from ganlm.models.ngram import NGram, Settings

TEXT = b"a rose is a rose is a rose " * 40
RESULTS = {"weights": "model.safetensors", "sidecar": "model.json"}
OUTPUTS = RESULTS | {"rates": "rates.csv"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with the outputs of `split_corpus`."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    paths = {part: folder / f"{part}.npy" for part in ("train", "valid", "test")}
    write_json(folder / "corpus.json", split_corpus([TEXT], CorpusSettings(), paths).to_json())
    return folder


def train(job: Callable, corpus: Path, order: int) -> Path:
    """Run the stage; returns the folder of its outputs."""
    snakemake = job(
        inputs={"train": str(corpus / "train.npy"), "corpus": str(corpus / "corpus.json")},
        outputs=OUTPUTS,
        params={"model": parameters(order), "code": {"train_ngram.py": "c0de"}},
        wildcards={"model": "rose"},
    )
    train_ngram.main(snakemake)
    return Path(snakemake.output.weights).parent


def parameters(order: int) -> dict:
    return {"kind": "ngram", "order": order, "smoothing": "witten-bell"}


def test_a_saved_unigram_is_witten_bell_by_hand(job: Callable, corpus: Path):
    folder = train(job, corpus, order=1)
    model = NGram.load(folder / OUTPUTS["weights"], 27, Settings(order=1))
    counts = np.bincount(load_tokens(corpus / "train.npy"), minlength=27)
    types = np.count_nonzero(counts)
    expected = (counts + types / 27) / (counts.sum() + types)
    np.testing.assert_allclose(model.predict(model.start(1))[0], expected, rtol=1e-12)


def test_the_sidecar_says_what_the_model_is(job: Callable, corpus: Path):
    folder = train(job, corpus, order=3)
    sidecar = json.loads((folder / "model.json").read_text())
    description = json.loads((corpus / "corpus.json").read_text())
    tokens = load_tokens(corpus / "train.npy").tolist()
    distinct = [len(Counter(zip(*(tokens[i:] for i in range(n)), strict=False))) for n in (1, 2, 3)]
    assert sidecar["distinct_ngrams"] == distinct
    assert sidecar["training_tokens"] == len(tokens) == len(TEXT) * 9 // 10
    assert sidecar["corpus_sha256"] == description["sha256"]["train"]
    assert sidecar["alphabet"] == description["alphabet"]["symbols"]
    assert sidecar["code"] == {"train_ngram.py": "c0de"}
    assert sidecar["parameters"] == parameters(3)


def test_the_same_text_gives_the_same_bytes(job: Callable, corpus: Path):
    folder = train(job, corpus, order=3)
    first = [(folder / name).read_bytes() for name in RESULTS.values()]
    train(job, corpus, order=3)
    assert first == [(folder / name).read_bytes() for name in RESULTS.values()]


def test_how_long_it_took_is_told_apart(job: Callable, corpus: Path):
    (rate,) = pd.read_csv(train(job, corpus, order=3) / OUTPUTS["rates"]).itertuples(index=False)
    assert rate.tokens == len(TEXT) * 9 // 10
    assert 0 < rate.seconds < 60
