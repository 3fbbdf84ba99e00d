"""Generators that are not ours: the page about them followed to the letter, and what if they fail."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from clone import BIN, Clone, succeed

PAGE = Path(__file__).parents[2] / "docs/your-generator.md"
CONFIG = "my_config.yaml"


def blocks(language):
    """The page's code blocks in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def shell(clone, commands):
    """Run what the page says, with this interpreter's environment in the place of the clone's."""
    return succeed("sh", "-e", "-c", commands.replace(".venv/bin/", f"{BIN}/"), cwd=clone.path)


def shorten(clone):
    """The demo with one quick model, few draws and one table; the page itself is followed as it stands."""
    file = clone.path / "config/config.yaml"
    config = yaml.safe_load(file.read_text())
    config["models"] = {name: config["models"][name] for name in ("2-gram",)}
    config["choose_n"]["models"] = []
    del config["sweep"], config["findings"]
    config["evaluation"] |= {"baseline": None, "draws": 100, "draws_grid": [50], "characters": 1000}
    file.write_text(yaml.safe_dump(config, sort_keys=False))


def add_model(clone, block):
    """Add a block of the page below `models:`."""
    file = clone.path / CONFIG
    config = file.read_text()
    assert config.count("\nmodels:\n") == 1
    file.write_text(config.replace("\nmodels:\n", f"\nmodels:\n{block}"))


def show_choice_of_n(clone, model):
    """Ask how many draws a model needs."""
    file = clone.path / CONFIG
    config = file.read_text()
    assert config.count("  models: []\n") == 1
    file.write_text(config.replace("  models: []\n", f"  models: [{model}]\n"))


@pytest.fixture(scope="module")
def followed(repository: Clone, tmp_path_factory: pytest.TempPathFactory):
    """A clone in which a stranger has followed the page, and what the table said after part a."""
    clone = repository.copy(tmp_path_factory.mktemp("page") / "clone")
    shorten(clone)
    classes, models, (run, count, sample) = blocks("python"), blocks("yaml"), blocks("sh")
    clone.run("results/demo/corpus/test.npy", config=None)
    (clone.path / "my_generator.py").write_text(classes[0])
    config = (clone.path / "config/config.yaml").read_text()
    assert config.startswith("name: demo\n")
    (clone.path / CONFIG).write_text(config.replace("name: demo", "name: mine"))
    add_model(clone, models[0])
    first = shell(clone, run)
    (clone.path / "my_generator.py").write_text("\n\n".join(classes))
    add_model(clone, models[1])
    show_choice_of_n(clone, "moody")
    add_model(clone, models[2])
    shell(clone, count)
    add_model(clone, models[3])
    second = shell(clone, run)
    (clone.results("mine") / "samples/repeater.txt").unlink()
    shell(clone, sample)
    return clone, first, second


def test_the_page_leads_into_the_table(followed):
    clone, first, second = followed
    assert re.search(r"^repeater +window-1000 ", first, re.MULTILINE)
    assert "my-program" not in first
    for model in ("repeater", "moody", "my-program", "my-counts"):
        assert model in second
    table = pd.read_csv(clone.results("mine") / "tables/table1.csv")
    assert {"repeater", "moody", "my-program", "my-counts", "2-gram"} <= set(table["Model"])


def test_the_page_leads_to_samples(followed):
    clone, _, _ = followed
    samples = clone.results("mine") / "samples"
    assert {path.stem for path in samples.glob("*.txt")} == {"repeater", "moody", "my-program", "2-gram"}
    assert [len(line) for line in (samples / "repeater.txt").read_text().splitlines()] == [100] * 640


def test_every_estimator_that_applies_is_in_the_results(followed):
    clone, _, _ = followed
    rows = {
        model: pd.read_csv(clone.results("mine") / f"evaluate/{model}.csv")
        for model in ("repeater", "my-program", "my-counts", "2-gram")
    }
    estimators = {model: set(each["estimator"]) for model, each in rows.items()}
    drawn = {"plug-in", "smoothed", "harmonic", "ibs", "rb-ibs", "brier"}
    assert estimators["repeater"] == estimators["my-program"] == drawn
    assert estimators["my-counts"] == {"plug-in", "smoothed", "harmonic"}
    assert estimators["2-gram"] >= drawn | {"exact", "expected-plug-in"}
    own = rows["my-program"]
    assert set(own["estimand"]) == {"sample", "mixture-0.001"}
    assert set(own["protocol"]) == {"window-1000"}
    assert set(own["block"]) == set(rows["repeater"]["block"])
    harmonic = {
        model: each.query("estimand == 'sample' and estimator == 'harmonic' and protocol == 'window-1000'")
        for model, each in rows.items()
    }
    means = {model: each["total"].sum() / each["tokens"].sum() for model, each in harmonic.items()}
    assert means["2-gram"] == pytest.approx(means["my-program"], abs=0.4)
    assert all(1.5 < mean < 5 for mean in means.values())


def test_a_latent_generator_has_its_estimands_and_both_errors(followed):
    clone, _, _ = followed
    rows = pd.read_csv(clone.results("mine") / "evaluate/moody.csv")
    assert set(rows["protocol"]) == {"window-7"}
    assert set(rows["estimand"]) == {"sample", "argmax", "window"}
    assert set(rows["group"]) == {*range(21)}
    results = json.loads((clone.results("mine") / "evaluate/moody.json").read_text())["results"]
    for result in results:
        if result["estimator"] != "mean-softmax-bias":
            parts = result["text_se"] ** 2 + result["monte_carlo_se"] ** 2
            assert result["standard_error"] ** 2 == pytest.approx(parts)
            assert 0 < result["monte_carlo_se"] <= result["standard_error"]
    chosen = json.loads((clone.results("mine") / "choose_n/moody.json").read_text())
    assert (chosen["window"], chosen["positions"], chosen["plan"]) == (7, 448, None)
    assert chosen["slope"] == pytest.approx(-1, abs=0.03)
    assert "moody" in (clone.results("mine") / "tables/choose_n.txt").read_text()
    assert "prefixes for" in (clone.results("mine") / "logs/evaluate/moody.1-of-1.log").read_text()
    assert not list(clone.results("mine").rglob("*.resume*"))


def test_running_again_is_no_work(followed):
    clone, _, _ = followed
    assert clone.plan(config=CONFIG).jobs == set()


@pytest.mark.parametrize(
    ("file", "models"),
    [
        ("my_generator.py", {"repeater", "moody"}),
        ("examples/bigram.pl", {"my-program"}),
        ("examples/training.txt", {"my-program"}),
        ("my_counts.csv", {"my-counts"}),
    ],
)
def test_a_changed_file_re_evaluates_its_generator_only(followed, file, models):
    clone, _, _ = followed
    path = clone.path / file
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    try:
        plan = clone.plan(config=CONFIG)
    finally:
        path.write_bytes(before)
    assert plan.models == models
    assert not [job for job in plan.jobs if job.split()[0] in ("split_corpus", "train_ngram")]
    assert ("choose_n moody" in plan.jobs) == ("moody" in models)
    assert "results/mine/tables/table1.csv" in plan.outputs


PROGRAM = """
import json, os, pathlib, random, sys, time

size = len(json.loads(sys.stdin.readline())["symbols"])
print('{"ganlm": 1}', flush=True)
asked = 0
for line in sys.stdin:
    message = json.loads(line)
    if "windows" in message:
        with open("asked.txt", "a") as file:
            print(message["windows"], file=file)
        asked += 1
        continue
    if asked == 4 and os.path.exists("misbehave"):
        exec(pathlib.Path("misbehave").read_text())
    rng = random.Random(message["seed"])
    drawn = [[rng.randrange(size) for _ in range(n)] for _, _, n in message["draw"]]
    print(json.dumps({"id": message["id"], "drawn": drawn}), flush=True)
"""


def experiment(clone, name, reply_seconds=20, characters=500):
    """Ten blocks, each one window that is asked for once."""
    own = {"kind": "command", "command": ["python", "program.py"], "reply_seconds": reply_seconds}
    return clone.write_config(
        name,
        corpus={"source": "bundled", "characters": 20_000},
        models={"own": own},
        evaluation={
            "windows": [50],
            "block": 50,
            "draws": 20,
            "characters": characters,
            "estimators": ["harmonic"],
        },
    )


def measured(name):
    """The file for which the program is asked for its blocks, and not for samples too."""
    return f"results/{name}/evaluate/own.csv"


def asked(clone):
    """Which blocks the program was asked for since last time, in order."""
    file = clone.path / "asked.txt"
    found = file.read_text().splitlines()
    file.unlink()
    return found


@pytest.fixture(scope="module")
def undisturbed(repository: Clone, tmp_path_factory: pytest.TempPathFactory):
    """A clone with a program that was measured without trouble, and the blocks it was asked for."""
    clone = repository.copy(tmp_path_factory.mktemp("own") / "clone")
    (clone.path / "program.py").write_text(PROGRAM)
    clone.run(measured("undisturbed"), config=experiment(clone, "undisturbed"))
    return clone, asked(clone)


@pytest.mark.parametrize(
    ("misbehaviour", "said"),
    [
        ("print('Loading checkpoint shards', flush=True)", "not JSON: 'Loading checkpoint shards'"),
        ("sys.exit('cannot open weights.bin')", "exit status 1; it said: cannot open weights.bin"),
        ("time.sleep(60)", "did not answer within reply_seconds = 5"),
    ],
    ids=["text", "exits", "hangs"],
)
def test_a_run_goes_on_where_a_generator_misbehaved(undisturbed, tmp_path, misbehaviour, said):
    clone, everything = undisturbed[0].copy(tmp_path / "clone"), undisturbed[1]
    assert len(set(everything)) == len(everything) == 10
    (clone.path / "misbehave").write_text(misbehaviour)
    broken = clone.attempt(measured("disturbed"), config=experiment(clone, "disturbed", reply_seconds=5))
    assert broken.returncode != 0
    log = (clone.results("disturbed") / "logs/evaluate/own.1-of-1.log").read_text().splitlines()
    assert said in log[-1]
    assert log[-1].count("the generator 'python program.py'") == 1
    assert said in broken.stdout
    assert asked(clone)[:4] == everything[:4]

    (clone.path / "misbehave").unlink()
    clone.run(measured("disturbed"), config=experiment(clone, "disturbed", reply_seconds=20))
    assert asked(clone) == everything[3:]
    rows = [clone.results(name) / "evaluate/own.csv" for name in ("undisturbed", "disturbed")]
    assert rows[0].read_bytes() == rows[1].read_bytes()
    assert not list(clone.results("disturbed").rglob("*.resume"))


def test_a_program_that_was_changed_is_another_generator(undisturbed, tmp_path):
    """What its older self drew is not mixed with what it draws now."""
    clone, everything = undisturbed[0].copy(tmp_path / "clone"), undisturbed[1]
    (clone.path / "misbehave").write_text("sys.exit(1)")
    config = experiment(clone, "changed")
    assert clone.attempt(measured("changed"), config=config).returncode != 0
    assert asked(clone)[:4] == everything[:4]
    (clone.path / "program.py").write_text(PROGRAM.replace("rng.randrange(size)", "rng.randrange(size // 2)"))
    (clone.path / "misbehave").unlink()
    clone.run(measured("changed"), config=config)
    assert asked(clone) == everything


def test_shards_change_no_byte_even_if_most_have_nothing_to_do(undisturbed, tmp_path):
    clone = undisturbed[0].copy(tmp_path / "clone")
    config = experiment(clone, "undisturbed", characters=100)
    results = [clone.results("undisturbed") / f"evaluate/own.{kind}" for kind in ("csv", "json")]
    names = [str(path.relative_to(clone.path)) for path in results]
    found = []
    for shards in (1, 5):
        clone.run("--forceall", "--set-scatter", f"evaluation={shards}", "--", *names, config=config)
        found.append([path.read_bytes() for path in results])
    assert found[0] == found[1]
    assert pd.read_csv(results[0])["block"].nunique() == 2
