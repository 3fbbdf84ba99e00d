"""What a stage says of input that it cannot use: one sentence, the last line of its log."""

import bz2
import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import approx_evaluate
import gather_evaluation
import numpy as np
import pretrain_lm
import pytest
import render_table1
import split_corpus
import train_ngram
import tune
from safetensors.numpy import save as safetensors

from ganlm.corpus import CorpusSettings
from ganlm.corpus import split_corpus as write_parts
from ganlm.files import write_json
from ganlm.measurement import Row
from ganlm.summary import FACTS, LABELS

TEXT = b"a rose is a rose is a rose " * 100
REMEDY = "delete it, and the same command makes it again"
OTHER_VERSION = "so another version of the workflow wrote it"
COUNTS = "# ganlm counts, version 1, test sha256 {}, window 10\nposition,n,k\n"
NGRAM = {"kind": "ngram", "order": 2, "smoothing": "witten-bell"}
LSTM = {
    "kind": "lstm",
    "embedding": 4,
    "hidden": 4,
    "layers": 1,
    "dropout": 0,
    "training": {
        "epochs": 1,
        "updates": 2,
        "batch": 4,
        "window": 5,
        "carry": False,
        "learning_rate": 0.01,
        "decay": 1,
        "decay_from": 6,
        "schedule": "constant",
        "clip": 5,
        "precision": "float32",
        "validate_every": 1,
        "validation_tokens": 20,
        "validation_window": 5,
        "seed": 1,
    },
}
EVALUATION = {
    "block": 10,
    "draws": 10,
    "draws_grid": [],
    "cap": 10,
    "estimators": ["harmonic"],
    "seed": 1,
    "pseudocount": 0.5,
    "mixture": 0,
    "characters": None,
    "explicit_characters": None,
}


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


@dataclass(frozen=True)
class Case:
    """A stage, the file that is put in the place of a good one, and what the stage says."""

    stage: str
    file: str
    content: bytes
    said: str
    settings: dict = field(default_factory=dict)


def text(content: bytes, said: str, file: str = "text", **settings: object) -> Case:
    return Case("split_corpus", file, content, said, settings)


def weights(stage: str, content: bytes, said: str, **settings: object) -> Case:
    return Case(stage, "model.safetensors", content, said, settings)


def counts(rows: str, said: str, header: str = COUNTS) -> Case:
    block = {"kind": "counts", "file": "counts.csv"}
    return Case("approx_evaluate", "counts.csv", (header + rows).encode(), said, block)


def as_npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


RESULT = dict.fromkeys((*LABELS, *FACTS), 1)
SHARD = ",".join(Row._fields)
CASES = {
    "empty text": text(b"", "the corpus is empty: corpus.path must name a file with text in it"),
    "foreign byte": text(
        b"abc1", "byte b'1' at offset 3 of the corpus is outside [a-z ]: clean the text, or"
    ),
    "not UTF-8": text(
        b"ab\xff",
        "the corpus is not UTF-8: byte 0xff at offset 2; convert the file first",
        alphabet="observed",
    ),
    "half a character": text(
        "é".encode()[:1], "the corpus is not UTF-8: it ends inside a character", alphabet="observed"
    ),
    "text too short": text(b"abc", "the corpus has 3 tokens, too few to split into parts of"),
    "no words": text(b" \n ", "the corpus is empty: corpus.path must name", unit="word"),
    "truncated gzip": text(gzip.compress(TEXT)[:-9], "text is truncated or corrupt"),
    "truncated bzip2": text(bz2.compress(TEXT)[:-9], "text is truncated or corrupt"),
    "plain text called .gz": text(TEXT, "text.gz does not begin like a gz file: fetch it again", "text.gz"),
    "two files in a zip": text(
        zipped(("a", b"1"), ("b", b"2")), "text holds 2 files: pack exactly one text into the zip"
    ),
    "zip that climbs": text(
        zipped(("../a", b"1")), "text holds the file '../a', a path that leaves its folder"
    ),
    "tokens that are none": Case(
        "train_ngram", "train.npy", b"none", f"train.npy is no token file ({{}}): {REMEDY}"
    ),
    "empty tokens": Case("train_ngram", "train.npy", b"", "train.npy is no token file ({}): " + REMEDY),
    "truncated tokens": Case(
        "train_ngram", "train.npy", as_npy(np.zeros(99, np.uint8))[:-9], "train.npy is no token file ({}): "
    ),
    "tokens that are pickled": Case(
        "train_ngram",
        "train.npy",
        as_npy(np.array([print], object)),
        f"train.npy is no token file ({{}}): {REMEDY}",
    ),
    "tokens that are fractions": Case(
        "train_ngram", "train.npy", as_npy(np.zeros(9)), "train.npy holds float64 of shape (9,), no tokens"
    ),
    "tokens in a table": Case(
        "train_ngram",
        "train.npy",
        as_npy(np.zeros((3, 3), np.uint8)),
        "train.npy holds uint8 of shape (3, 3), no tokens",
    ),
    "corpus that is no JSON": Case(
        "train_ngram", "corpus.json", b"{", f"corpus.json is no JSON ({{}}): {REMEDY}"
    ),
    "corpus in binary": Case("train_ngram", "corpus.json", b"\xff", "corpus.json is no JSON ({}): " + REMEDY),
    "corpus that is a list": Case(
        "train_ngram", "corpus.json", b"[]", f"corpus.json lacks 'alphabet', {OTHER_VERSION}"
    ),
    "corpus of another version": Case(
        "train_ngram",
        "corpus.json",
        b'{"alphabet": {}}',
        f"corpus.json lacks 'tokens', {OTHER_VERSION}: {REMEDY}",
    ),
    "corpus without symbols": Case(
        "train_ngram",
        "corpus.json",
        b'{"alphabet": {"size": 3}, "tokens": {}, "unknown_share": {}, "sha256": {}}',
        f"corpus.json describes no alphabet ('symbols'): {REMEDY}",
    ),
    "text too short to train on": Case(
        "pretrain_lm",
        "train.npy",
        as_npy(np.zeros(39, np.uint8)),
        "the train part has 39 tokens, but an epoch of these settings reads 40: use a longer text, or lower",
    ),
    "checkpoint that is none": Case(
        "pretrain_lm",
        "resume.safetensors",
        b"pickle",
        "resume.safetensors is damaged ({}): delete it to train from the start",
    ),
    "checkpoint that is pickled": Case(
        "pretrain_lm",
        "resume.safetensors",
        pickle.dumps({"network": [1, 2, 3]}),
        "resume.safetensors is damaged ({}): delete it to train from the start",
    ),
    "counts that are none": weights(
        "approx_evaluate", b"", "model.safetensors holds no counts of n-grams ({}): delete it", **NGRAM
    ),
    "weights of a network in place of counts": weights(
        "approx_evaluate",
        safetensors({"output.bias": np.zeros(3)}),
        "model.safetensors holds no counts of n-grams ('keys.1'): delete it to train again",
        **NGRAM,
    ),
    "weights that are none": weights(
        "approx_evaluate", b"\x80\x04", "model.safetensors holds no weights of a model of these sizes", **LSTM
    ),
    "weights of other sizes": weights(
        "approx_evaluate",
        safetensors({"output.bias": np.zeros(3, np.float32)}),
        "model.safetensors holds no weights of a model of these sizes: delete it to train again",
        **LSTM,
    ),
    "counts without a first line": counts(
        "1,10,2\n", "counts.csv: the first line is not `# ganlm counts, version 1,", header="position,n,k\n"
    ),
    "counts of another text": counts(
        "1,10,2\n", "counts.csv was counted on a text with sha256", header=COUNTS.format("a" * 64)
    ),
    "more hits than draws": counts("1,10,11\n", "counts.csv: impossible or repeated row {}"),
    "hits that are words": counts("1,10,many\n", "counts.csv: not a table of whole numbers ({})"),
    "counts of a part of a block": counts("1,10,2\n", "counts.csv covers no block of 10 tokens whole"),
    "no file of the class": Case(
        "approx_evaluate",
        "unused",
        b"",
        "there is no file mine.py: `object` is path/to/file.py:ClassName",
        {"kind": "python", "object": "mine.py:Mine", "arguments": {}},
    ),
    "no program": Case(
        "approx_evaluate",
        "unused",
        b"",
        "cannot start './no-such-program': No such file or directory",
        {"kind": "command", "command": ["./no-such-program"], "reply_seconds": 5},
    ),
    "no N was chosen": Case(
        "approx_evaluate",
        "chosen.json",
        b'{"model": "m", "draws": null}',
        "choose_n found no N for m: raise choose_n.max_draws",
        NGRAM | {"draws": "chosen"},
    ),
    "shard of another version": Case(
        "gather_evaluation",
        "shard.csv",
        SHARD.replace(",group", ",sum_bits").encode() + b"\n",
        f"shard.csv has other columns (['group', 'sum_bits']), {OTHER_VERSION}: {REMEDY}",
    ),
    "shard without a header": Case(
        "gather_evaluation", "shard.csv", b"", "shard.csv is no table ({}): " + REMEDY
    ),
    "shard without rows": Case(
        "gather_evaluation",
        "shard.csv",
        SHARD.encode() + b"\n",
        "no estimator in evaluation.estimators applies to m",
    ),
    "summary of another version": Case(
        "render_table1",
        "summary.json",
        json.dumps({"model": "m", "results": [{k: v for k, v in RESULT.items() if k != "plateau"}]}).encode(),
        f"summary.json has a result without 'plateau', {OTHER_VERSION}: {REMEDY}",
    ),
    "sidecar of another version": Case(
        "tune", "model.json", b'{"best_epoch": 1}', f"model.json lacks 'best_validation_bpc', {OTHER_VERSION}"
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a good text, its parts, and nothing else."""
    (tmp_path / "text").write_bytes(TEXT)
    paths = {part: tmp_path / f"{part}.npy" for part in ("train", "valid", "test")}
    write_json(tmp_path / "corpus.json", write_parts([TEXT], CorpusSettings(), paths).to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(case: Case, job: Callable) -> None:
    """The stage, on good inputs but for one."""
    parts = {"train": "train.npy", "valid": "valid.npy", "text": "test.npy", "corpus": "corpus.json"}
    shared = {"code": {}, "torch": "2"}
    named = {"model": "m", "tune": "t", "scatteritem": "1-of-1"}
    match case.stage:
        case "split_corpus":
            settings = {"unit": "character", "alphabet": "text8", "vocabulary": None, "characters": None}
            outputs = {part: f"out/{part}" for part in ("train", "valid", "test", "corpus")}
            params = {"corpus": settings | {"split": [0.8, 0.1, 0.1]} | case.settings}
            split_corpus.main(job(inputs={"text": case.file}, outputs=outputs, params=params))
        case "train_ngram":
            outputs = {"weights": "out/model", "sidecar": "out/sidecar"}
            params = shared | {"model": NGRAM}
            train_ngram.main(job(inputs=parts, outputs=outputs, params=params, wildcards=named))
        case "pretrain_lm":
            outputs = {name: name for name in ("best", "last", "sidecar", "history", "rates")}
            params = shared | {"model": LSTM}
            pretrain_lm.main(job(inputs=parts, outputs=outputs, params=params, wildcards=named))
        case "approx_evaluate":
            evaluation = EVALUATION | {key: case.settings[key] for key in ("draws",) if key in case.settings}
            block = {key: value for key, value in case.settings.items() if key != "draws"}
            params = {"evaluation": evaluation, "part": "test", "windows": [10], "precision": "float32"}
            inputs = parts | {"model": [case.file], "chosen": "chosen.json"}
            params = shared | params | {"model": block}
            approx_evaluate.main(job(inputs=inputs, outputs={"x": "out/x"}, params=params, wildcards=named))
        case "gather_evaluation":
            outputs = {"blocks": "out/blocks", "summary": "out/summary"}
            gather_evaluation.main(
                job(inputs={"x": case.file}, outputs=outputs, params={"level": 0.95}, wildcards=named)
            )
        case "render_table1":
            inputs = {"corpus": "corpus.json", "summaries": [case.file], "literature": "none"}
            render_table1.main(job(inputs=inputs, outputs={"x": "out/x"}, params={}))
        case "tune":
            outputs, params = {"points": "out/p", "winner": "out/w"}, {"points": {"a": {}}, "model": "m"}
            tune.main(job(inputs={"x": case.file}, outputs=outputs, params=params, wildcards=named))


@pytest.mark.parametrize("name", CASES)
def test_a_bad_input_gets_one_sentence_and_leaves_no_result(name: str, job: Callable, folder: Path):
    case = CASES[name]
    sha256 = json.loads((folder / "corpus.json").read_text())["sha256"]["test"]
    (folder / case.file).write_bytes(case.content.replace(b"sha256 {}", f"sha256 {sha256}".encode()))
    (folder / "out").mkdir()
    with pytest.raises(SystemExit) as failure:
        run(case, job)
    assert failure.value.code == 1
    sentence = (folder / "stage.log").read_text().splitlines()[-1].split(" ERROR ")[1]
    start, _, end = case.said.partition("{}")
    assert start in sentence
    assert end in sentence
    assert len(sentence) < 400
    written = [path.name for path in (folder / "out").iterdir() if path.suffix not in (".lock", ".resume")]
    assert written == [], "no half file is taken for a whole one"


def test_a_summary_holds_what_is_asked_of_it():
    """The reader's list of facts is the writer's."""
    import pandas as pd

    from ganlm.summary import summarise

    row = Row("window-10", "sample", "exact", 0, "bits", 0, 10, 20.0, 0.0, 0.0, 0)
    (result,) = summarise(pd.DataFrame([row, row._replace(block=1)], columns=Row._fields), 0.95)
    assert set(result) == {*LABELS, *FACTS}
