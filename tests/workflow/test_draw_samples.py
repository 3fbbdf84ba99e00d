"""What models write, from their files alone."""

import json
from pathlib import Path

from clone import Clone

COUNT, LENGTH = 10, 30  # as in config/tiny.yaml
MODELS = {
    "uniform",
    "1-gram",
    "3-gram",
    "4-gram-kn",
    "lstm",
    "seqgan-published",
    "seqgan-published-last",
    "recurrent-gan",
    "copy-sampler",
    "bigram-perl",
}
KEPT = "results/tiny/samples/seqgan-published-e2.txt"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_model_that_can_write_has_written(finished: Clone):
    folder = finished.results() / "samples"
    assert set(contents(folder)) == {f"{model}.{kind}" for model in MODELS for kind in ("txt", "json")}
    alphabet = json.loads((finished.results() / "corpus/corpus.json").read_text())["alphabet"]["symbols"]
    written = set()
    for model in MODELS:
        found = json.loads((folder / f"{model}.json").read_text())
        lines = (folder / f"{model}.txt").read_text().splitlines()
        assert found == {"model": model, "count": COUNT, "length": LENGTH, "seed": 1, "samples": lines}
        assert [len(line) for line in lines] == [LENGTH] * COUNT
        assert set("".join(lines)) <= set(alphabet)
        written.update(lines)
    assert len(written) == COUNT * len(MODELS)


def test_samples_come_from_the_saved_model_and_come_out_the_same(finished_clone: Clone):
    folder = finished_clone.results() / "samples"
    before = contents(folder)
    for path in folder.iterdir():
        path.unlink()
    files = [f"results/tiny/samples/{model}.txt" for model in MODELS]
    assert finished_clone.plan(*files).jobs == {f"draw_samples {model}" for model in MODELS}
    finished_clone.run(*files)
    assert contents(folder) == before


def test_a_kept_epoch_can_be_asked_for(finished_clone: Clone):
    assert finished_clone.plan(KEPT).jobs == {"draw_samples seqgan-published-e2"}
    finished_clone.run(KEPT)
    assert len((finished_clone.path / KEPT).read_text().splitlines()) == COUNT


def test_a_table_of_counts_has_nothing_to_say(repository: Clone):
    plan = repository.plan(config=None)
    assert "copy-counts" in plan.models
    assert "draw_samples copy-counts" not in plan.jobs
    assert "draw_samples copy-sampler" in plan.jobs
    asked = repository.attempt("--dry-run", "results/demo/samples/copy-counts.txt", config=None)
    assert asked.returncode != 0
    assert "copy-counts.txt" in asked.stdout
