import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from latent import Finite
from measuring import pick, task, total, whole
from scipy.special import logsumexp

from ganlm.estimators import Harmonic, PlugIn
from ganlm.generator import GeneratorError
from ganlm.measure_latent import WINDOW_LIKELIHOOD, measure
from ganlm.measurement import tasks
from ganlm.resume import Journal
from ganlm.shared_draws import drawing
from ganlm.summary import differences, summarise

WINDOW = 5
CHANCES = [0.4, 0.2, 0.15, 0.1, 0.1, 0.05]
TOKENS = np.random.default_rng(7).choice(6, 303, p=CHANCES).astype(np.uint8)
SHARP, SOFT = Finite.random(3.0), Finite.random(0.5)
QUICK = ("mean-softmax", "harmonic")


@pytest.fixture
def run(tmp_path):
    def run(model, wanted, name=None):
        return whole(measure(model, wanted, Journal(tmp_path / (name or os.urandom(8).hex()), "key"), 1))

    return run


def error(rows, estimator, estimand="sample"):
    """The standard error of the total due to drawing, from what each group added to each block."""
    mine = [row for row in rows if (row.estimator, row.estimand) == (estimator, estimand) and row.group]
    table = pd.DataFrame(mine).pivot(index="block", columns="group", values="total").to_numpy()
    return drawing(table, np.ones(1)).variance ** 0.5


def exact(model, tokens=TOKENS, window=WINDOW):
    """-log2 E_z p of each token."""
    return -np.log2(model.gold(tokens, window).mean(axis=0))


def window_bits(model):
    """-log2 E_z Π p, summed over windows."""
    nats = np.add.reduceat(np.log(model.gold(TOKENS, WINDOW)), np.arange(0, len(TOKENS), WINDOW), axis=1)
    return -(logsumexp(nats, axis=0) - np.log(len(nats))).sum() / np.log(2)


@pytest.mark.parametrize("model", [SHARP, SOFT], ids=["sharp", "soft"])
def test_both_questions_have_their_closed_forms(run, model):
    draws = 4013
    rows = run(model, task(TOKENS, WINDOW, draws=draws))
    p, modes = model.gold(TOKENS, WINDOW).mean(axis=0), model.modes(TOKENS, WINDOW).mean(axis=0)
    for estimand, name, expected in (
        ("sample", "mean-softmax", -np.log2(p)),
        ("sample", "mean-softmax-jackknife", -np.log2(p)),
        ("sample", "harmonic", Harmonic(draws).expectation(p)),
        ("sample", "ibs", Harmonic(draws).expectation(p)),
        ("sample", "plug-in", PlugIn(draws).expectation(p)),
        ("argmax", "harmonic", Harmonic(draws).expectation(modes)),
        ("argmax", "ibs", Harmonic(draws).expectation(modes)),
    ):
        assert abs(total(rows, name, estimand) - expected.sum()) < 4 * error(rows, name, estimand), name
    assert error(rows, "mean-softmax") < error(rows, "harmonic") < error(rows, "ibs")
    assert sum(row.never_hit for row in pick(rows, "harmonic", "argmax")) == (modes == 0).sum()
    found = total(rows, WINDOW_LIKELIHOOD, "window")
    assert abs(found - window_bits(model)) < 4 * error(rows, WINDOW_LIKELIHOOD, "window")
    assert abs(found - exact(model).sum()) > 10 * error(rows, WINDOW_LIKELIHOOD, "window")


def test_the_jensen_bias_is_stated_and_the_jackknife_removes_it(run):
    """With few draws, over many seeds: the mean softmax is too large by its stated bias."""
    names = ("mean-softmax", "mean-softmax-jackknife", "mean-softmax-bias")
    model = Finite.random(1.0)
    totals = np.array(
        [
            [total(rows, name) for name in names]
            for seed in range(80)
            for rows in [run(model, task(TOKENS, 2, block=303, draws=45, seed=seed, estimators=QUICK))]
        ]
    )
    plain, jackknife, bias = totals.mean(axis=0)
    error = totals.std(axis=0, ddof=1) / len(totals) ** 0.5
    truth = exact(model, window=2).sum()
    assert bias > 4 * error[2]
    assert abs(plain - truth - bias) < 4 * error[0] + 0.2 * bias
    assert abs(jackknife - truth) < bias / 3 + 4 * error[1]


def test_a_generator_that_ignores_its_noise_answers_both_questions_alike(run):
    deaf = Finite(SOFT.p[:1])
    rows = run(deaf, task(TOKENS, WINDOW, draws=10))
    for name, estimand in (("mean-softmax", "sample"), (WINDOW_LIKELIHOOD, "window")):
        assert total(rows, name, estimand) == pytest.approx(exact(deaf).sum(), rel=1e-9)
        assert error(rows, name, estimand) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("block", [10, 13, 40, 303, 400])
def test_blocks_may_cut_windows(run, block):
    """Draws belong to the text as a whole, so every way to cut it gives the same sums."""
    whole = run(SHARP, task(TOKENS, WINDOW, block=303, draws=100))
    parts = run(SHARP, task(TOKENS, WINDOW, block=block, draws=100))
    for name in ("mean-softmax", "harmonic", "plug-in", "ibs", "smoothed"):
        assert total(parts, name) == pytest.approx(total(whole, name), rel=1e-12), name
        assert error(parts, name) == pytest.approx(error(whole, name), rel=1e-9), name
    likelihoods = [total(rows, WINDOW_LIKELIHOOD, "window") for rows in (parts, whole)]
    assert likelihoods[0] == pytest.approx(likelihoods[1], rel=1e-12)
    assert sum(row.tokens for row in pick(parts, "harmonic")) == 303


def test_shards_change_no_digit(run):
    wanted = task(TOKENS, WINDOW, block=13, draws=50)
    parts = [
        each
        for shard in range(1, 9)
        for each in tasks("model", "latent", wanted.text, [WINDOW], wanted.settings, (shard, 8))
    ]
    assert len(parts) == 8
    sharded = [row for part in parts for row in run(SHARP, part)]
    assert list(map(repr, sharded)) == list(map(repr, run(SHARP, wanted)))


def test_windows_of_all_lengths_meet_the_same_noise(run):
    """What comes first in every window is told alike, so that lengths can be compared."""
    found = [
        pick(run(SHARP, task(TOKENS[:window], window, block=1, draws=50)), "harmonic")[0]
        for window in (1, 3, 7)
    ]
    assert len({row.total for row in found}) == 1


def test_an_impossible_window_has_infinite_bits(run):
    p = SHARP.p.copy()
    p[:, :, 5] = 0
    rows = run(Finite(p / p.sum(axis=-1, keepdims=True)), task(TOKENS, WINDOW, draws=40))
    assert total(rows, WINDOW_LIKELIHOOD, "window") == np.inf
    result = summary(rows, WINDOW_LIKELIHOOD, "window")
    assert (result["mean"], result["low"]) == (np.inf, np.inf)
    assert np.isfinite(total(rows, "mean-softmax"))


def test_a_carried_state_has_no_noise_to_be_drawn_anew(run):
    with pytest.raises(GeneratorError, match="needs windows"):
        run(SHARP, task(TOKENS, None))


def test_the_log_says_what_the_tree_saves(run, caplog):
    caplog.set_level(logging.INFO)
    run(SHARP, task(TOKENS[:300], 2, draws=2))
    assert "window-2: 7 prefixes for 300 positions, 42.9 times less work" in caplog.text


def test_finished_groups_are_not_walked_again(run):
    class Failing(Finite):
        def start(self, draws, rng):
            if self.started == 7:
                raise ValueError("out of noise")
            return super().start(draws, rng)

    wanted = task(TOKENS, WINDOW, draws=45)
    with pytest.raises(ValueError, match="out of noise"):
        run(Failing(SHARP.p), wanted, "journal")
    again = Finite(SHARP.p)
    rows = run(again, wanted, "journal")
    assert again.started == 20 - 7
    assert list(map(repr, rows)) == list(map(repr, run(Finite(SHARP.p), wanted)))


KILLED = """
import sys, time
from pathlib import Path
import numpy as np
from latent import Finite
from measuring import task
from ganlm.measure_latent import measure
from ganlm.resume import Journal

class Slow(Finite):
    def start(self, draws, rng):
        print("group", flush=True)
        return super().start(draws, rng)

    def feed(self, state, token):
        time.sleep(float(sys.argv[3]))
        return super().feed(state, token)

tokens = np.load(sys.argv[1])
rows = measure(Slow.random(3.0), task(tokens, 5, draws=45), Journal(Path(sys.argv[2]), "key"), 1)
print(*rows, sep="\\n")
"""


def test_a_walk_that_was_killed_goes_on_with_its_group(tmp_path):
    tokens, journal = tmp_path / "tokens.npy", tmp_path / "journal"
    np.save(tokens, TOKENS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def start(path, pause):
        command = [sys.executable, "-c", KILLED, str(tokens), str(path), str(pause)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    killed = start(journal, 0.0005)
    while len(list(tmp_path.glob("journal.*.npy"))) < 3:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    begun = killed.communicate()[0].count("group")
    finished = len(list(tmp_path.glob("journal.*.npy")))
    assert 3 <= finished <= begun < 20
    resumed, undisturbed = (start(path, 0).communicate()[0] for path in (journal, tmp_path / "other"))
    assert resumed.count("group\n") == 20 - finished
    assert undisturbed.count("group\n") == 20
    assert resumed.replace("group\n", "") == undisturbed.replace("group\n", "")


def summary(rows, estimator, estimand="sample"):
    rows = [row for row in rows if (row.estimand, row.estimator) == (estimand, estimator)]
    (found,) = summarise(pd.DataFrame(rows), 0.95)
    return found


def test_the_stated_error_is_the_spread_over_other_draws_and_other_texts(run):
    """Fresh texts and fresh draws every time; what the draws do is told apart by the exact bits of each text.

    Short twin of the rows `shared-draws` of `benchmarks/coverage.py`.
    """
    model, repeats, tokens, rng = SHARP, 100, 960, np.random.default_rng(3)
    texts = rng.choice(6, (repeats, tokens), p=CHANCES).astype(np.uint8)
    truth = np.array([exact(model, text, 2).mean() for text in texts])
    runs = [
        run(model, task(text, 2, block=16, draws=200, seed=seed, estimators=QUICK))
        for seed, text in enumerate(texts)
    ]
    tolerance = 4 * (2 / repeats) ** 0.5
    for estimator in QUICK:
        found = [summary(rows, estimator) for rows in runs]
        means = np.array([each["mean"] for each in found])
        names = ("standard_error", "text_se", "monte_carlo_se")
        combined, text, draws = (np.mean([each[name] ** 2 for each in found]) for name in names)
        assert means.var(ddof=1) / combined == pytest.approx(1, abs=tolerance), estimator
        assert (means - truth).var(ddof=1) / draws == pytest.approx(1, abs=tolerance), estimator
        assert truth.var(ddof=1) / text == pytest.approx(1, abs=tolerance), estimator


HITS = ("plug-in", "smoothed", "harmonic", "ibs")
SHOWN = [
    *[("sample", name) for name in ("mean-softmax", "mean-softmax-jackknife", *HITS)],
    *[("argmax", name) for name in HITS],
    ("window", WINDOW_LIKELIHOOD),
]


@pytest.fixture(scope="module", params=[1.0, 10.0], ids=["soft", "sharp"])
def repeated(request, tmp_path_factory):
    """Totals and their stated errors over many seeds, by what is shown."""
    model, folder = Finite.random(request.param, kinds=2000), tmp_path_factory.mktemp("repeated")
    found = {shown: [] for shown in SHOWN}
    for seed in range(120):
        wanted = task(TOKENS[:60], 3, block=60, draws=200, seed=seed, estimators=("mean-softmax", *HITS))
        rows = whole(measure(model, wanted, Journal(folder / f"{seed}", "key"), 1))
        for (estimand, name), pairs in found.items():
            pairs.append((total(rows, name, estimand), error(rows, name, estimand)))
    return {shown: np.array(pairs).T for shown, pairs in found.items()}


@pytest.mark.parametrize("shown", SHOWN, ids="-".join)
def test_the_stated_error_of_all_that_is_shown_is_the_real_one(repeated, shown):
    """Where few draws carry it, a jackknife may be too large on average, not too small (Efron-Stein 1981)."""
    totals, errors = repeated[shown]
    ratio = (errors**2).mean() ** 0.5 / totals.std(ddof=1)
    carried = shown in (("argmax", "plug-in"), ("sample", "plug-in"), ("window", WINDOW_LIKELIHOOD))
    assert 0.8 < ratio < (2.0 if carried else 1.25)


def alone(share):
    """A generator that hits token 5 only with one of many noise draws."""
    p = np.zeros((round(1 / share), 7, 6))
    p[:, :, 0] = 1
    p[0] = 1 / 6
    return Finite(p)


@pytest.mark.filterwarnings("error")
def test_a_window_that_one_group_alone_can_emit_has_no_known_error(run):
    tokens = np.tile(np.array([5, 0], np.uint8), 50)
    for seed in range(20):
        rows = run(alone(1 / 200), task(tokens, 2, block=10, draws=200, seed=seed))
        if sum(row.total != 0 for row in rows if row.group and row.estimator == "plug-in") == 10:
            break
    found = summary(rows, WINDOW_LIKELIHOOD, "window")
    assert 0 < found["mean"] < np.inf
    assert (found["low"], found["high"], found["one_group"]) == (0, np.inf, True)
    assert np.isnan([found["standard_error"], found["monte_carlo_se"]]).all()
    found = summary(rows, "mean-softmax")
    assert found["one_group"]
    assert 0 == found["low"] < found["mean"] < found["high"] < np.inf


def test_a_paired_difference_carries_the_error_of_shared_draws(run):
    """A baseline that gives every block the same bits leaves nothing but the draws."""
    rows = run(SHARP, task(TOKENS, WINDOW, block=5, draws=60))
    baseline = [row._replace(estimator="exact", draws=0) for row in pick(rows, "mean-softmax")]
    frames = {"ours": pd.DataFrame(rows), "base": pd.DataFrame(baseline)}
    (found,) = differences(frames, "base", 0.95).to_dict("records")
    alone = summary(rows, "mean-softmax")
    assert found["mean"] == 0
    assert found["tokens"] == len(TOKENS)
    assert found["high"] == pytest.approx(2.093 * alone["monte_carlo_se"], rel=0.25)
