"""A grid is trained as models are, and judged on the validation part alone."""

import json

import pandas as pd
import pytest
import yaml
from clone import Clone

TABLE = "results/tiny/tune/sizes.csv"


@pytest.fixture(scope="module")
def sidecars(finished: Clone) -> dict[str, dict]:
    """Point -> what its training wrote, by the names of the folders."""
    paths = (finished.results() / "tune/points/sizes").glob("*/model.json")
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


@pytest.fixture(scope="module")
def decided(finished: Clone) -> dict:
    return json.loads((finished.results() / "tune/sizes.json").read_text())


def test_nothing_that_tuning_needs_reads_the_test_part(repository: Clone):
    plan = repository.plan(TABLE)
    assert {job.split()[0] for job in plan.jobs} == {"split_corpus", "pretrain_point", "tune"}
    assert {"results/tiny/corpus/train.npy", "results/tiny/corpus/valid.npy"} < plan.inputs
    assert "results/tiny/corpus/test.npy" in plan.outputs - plan.inputs


def test_the_winner_has_the_fewest_bits_of_all_sidecars(sidecars: dict[str, dict], decided: dict):
    bits = {point: sidecar["best_validation_bpc"] for point, sidecar in sidecars.items()}
    first, second = sorted(bits, key=bits.get)
    assert (decided["winner"]["point"], decided["runner_up"]["point"]) == (first, second)
    assert decided["difference"] == bits[second] - bits[first] > 0
    assert decided["model"] == "lstm"


def test_every_point_is_a_row_in_the_order_of_the_grid(finished: Clone, sidecars: dict[str, dict]):
    table = pd.read_csv(finished.path / TABLE)
    assert list(table.columns) == ["point", "hidden", "best_epoch", "best_validation_bpc", "size"]
    assert list(table["hidden"]) == [8, 32]
    for record in table.to_dict("records"):
        sidecar = sidecars[record["point"]]
        assert sidecar["parameters"]["hidden"] == record["hidden"]
        for fact in ("best_epoch", "best_validation_bpc", "size"):
            assert record[fact] == pytest.approx(sidecar[fact], rel=1e-12)
        history = pd.read_csv(finished.results() / f"tune/points/sizes/{record['point']}/history.csv")
        assert record["best_validation_bpc"] == pytest.approx(history["validation_bpc"].min())


def test_the_block_of_the_winner_trains_to_the_same_bytes(finished_clone: Clone, decided: dict):
    """With as many threads: their number decides in which order floats are added."""
    corpus = yaml.safe_load((finished_clone.path / "config/tiny.yaml").read_text())["corpus"]
    config = finished_clone.write_config("pasted", corpus=corpus, models={"winner": decided["block"]})
    threads = "--set-threads=pretrain_lm=1"
    finished_clone.run(threads, "results/pasted/models/winner/model.safetensors", config=config)
    point = finished_clone.results() / "tune/points/sizes" / decided["winner"]["point"]
    model = finished_clone.results("pasted") / "models/winner"
    for name in ("model.safetensors", "last.safetensors", "model.json", "history.csv"):
        assert (model / name).read_bytes() == (point / name).read_bytes()
