"""What an evaluation goes on from, and what it must not."""

import json
from collections.abc import Callable
from pathlib import Path

import approx_evaluate
import pytest
import torch
from safetensors.torch import save_file

from ganlm.corpus import CorpusSettings, split_corpus
from ganlm.files import write_json
from ganlm.locks import only_writer
from ganlm.models.recurrent_gan import Architecture, Generator

MODEL = {"kind": "recurrent_gan", "hidden": 4, "layers": 1, "noise_std": 1.0}
EVALUATION = {
    "block": 10,
    "draws": 40,
    "draws_grid": [],
    "cap": 10,
    "estimators": ["harmonic"],
    "pseudocount": 0.5,
    "mixture": 0,
    "characters": 20,
    "explicit_characters": None,
    "seed": 1,
}


@pytest.fixture
def evaluate(job: Callable, tmp_path: Path) -> Callable[[], None]:
    """Measure a Recurrent GAN in the precision that `auto` comes to."""
    paths = {part: tmp_path / f"{part}.npy" for part in ("train", "valid", "test")}
    corpus = split_corpus([b"a rose is a rose is a rose " * 40], CorpusSettings(), paths)
    write_json(tmp_path / "corpus.json", corpus.to_json())
    network = Generator(len(corpus.alphabet), Architecture.parse(MODEL))
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    params = {"model": MODEL, "evaluation": EVALUATION, "part": "test", "windows": [5], "precision": "auto"}
    inputs = {"text": paths["test"], "corpus": tmp_path / "corpus.json", "chosen": "none"}
    inputs = {name: str(path) for name, path in inputs.items()}

    def run() -> None:
        (tmp_path / "stage.log").unlink(missing_ok=True)
        approx_evaluate.main(
            job(
                inputs=inputs | {"model": [str(tmp_path / "model.safetensors")]},
                outputs={"rows": "m.csv"},
                params=params | {"code": {}, "torch": "2"},
                wildcards={"model": "m", "scatteritem": "1-of-1"},
            )
        )

    return run


def last_line(folder: Path) -> str:
    return (folder / "stage.log").read_text().splitlines()[-1]


def test_a_shard_has_one_writer(evaluate: Callable, tmp_path: Path):
    """An orphan may still add rows to the journal, those of other settings even."""
    journal = tmp_path / "m.resume"
    journal.write_text("the orphan's")
    with only_writer(tmp_path / "m.lock"), pytest.raises(SystemExit):
        evaluate()
    said = f"another process is at work and holds {tmp_path}/m.lock: wait for it or end it"
    assert last_line(tmp_path).endswith(said)
    assert journal.read_text() == "the orphan's"
    evaluate()
    assert journal.read_text() != "the orphan's"


def test_it_goes_on_in_the_same_precision_only(
    evaluate: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A job may be submitted again to another kind of node."""
    found = {}
    for native in (True, False, False):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda native=native: {"bf16": native})
        evaluate()
        _, _, known, _ = json.loads((tmp_path / "m.resume").read_text().splitlines()[0])
        assert known["precision"] == ("bfloat16 on cpu" if native else "float32 on cpu")
        found[native] = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("m.resume.*.npy")}
    assert found[True]
    assert not found[True].keys() & found[False].keys()
