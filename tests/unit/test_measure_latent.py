import numpy as np
import pytest
from measuring import TEST, TRAIN, TRIGRAM, VOCABULARY, distributions, error, pick, task, total
from scipy.special import logsumexp

from ganlm.estimators import Harmonic, PlugIn
from ganlm.generator import GeneratorError, Latent
from ganlm.measure_latent import WINDOW_LIKELIHOOD, measure
from ganlm.models import ngram
from ganlm.models.ngram import NGram
from ganlm.resume import Journal

WINDOW, WEIGHT = 10, 0.3
OTHER = NGram.train(np.roll(TRAIN, 1)[::-1] * 5 % VOCABULARY, VOCABULARY, ngram.Settings(2))
TOKENS = TEST[:85]


class Mixture(Latent):
    """The noise picks, once per draw and window, which of two known models speaks."""

    vocabulary = VOCABULARY

    def gold(self, windows, draws, rng):
        assert windows.dtype == np.int64
        p, mode = self.components(windows)
        picked = (rng.random((draws, len(windows))) >= WEIGHT).astype(int)
        rows = np.arange(len(windows))
        return p[picked, rows], mode[picked, rows]

    def components(self, windows):
        """Gold probability and whether it is the largest, shape (2, rows, length)."""
        found = []
        for model in (TRIGRAM, OTHER):
            q = np.stack([p for _, p in model.distributions(windows)], axis=1)
            found.append((np.take_along_axis(q, windows[..., None], 2)[..., 0], q.argmax(axis=2) == windows))
        return tuple(np.stack(arrays) for arrays in zip(*found, strict=True))


@pytest.fixture
def run(tmp_path):
    def run(model, wanted, workers=1):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.resume"
        return measure(model, wanted, Journal(path, "key"), workers)

    return run


def per_token():
    """E_z p and E_z [gold is the most likely], noise drawn anew at every position."""
    p, mode = np.zeros(len(TOKENS)), np.zeros(len(TOKENS))
    for weight, model in ((WEIGHT, TRIGRAM), (1 - WEIGHT, OTHER)):
        q = distributions(model, TOKENS, WINDOW)
        p += weight * q[np.arange(len(TOKENS)), TOKENS]
        mode += weight * (q.argmax(axis=1) == TOKENS)
    return p, mode


def window_nats():
    """ln p of each window under both models, shape (2, windows)."""
    p = [distributions(m, TOKENS, WINDOW)[np.arange(len(TOKENS)), TOKENS] for m in (TRIGRAM, OTHER)]
    return np.add.reduceat(np.log(p), np.arange(0, len(TOKENS), WINDOW), axis=1)


def window_bits():
    """-log2 E_z Π p, summed over windows."""
    return -logsumexp(window_nats(), axis=0, b=[[WEIGHT], [1 - WEIGHT]]).sum() / np.log(2)


def test_both_questions_have_their_closed_forms(run):
    draws = 3000
    rows = run(Mixture(), task(TOKENS, WINDOW, draws=draws))
    p, mode = per_token()
    exact = -np.log2(p).sum()
    for name in ("mean-softmax", "harmonic"):
        assert abs(total(rows, name) - exact) < 4 * error(rows, name), name
    assert error(rows, "mean-softmax") < error(rows, "harmonic")
    assert abs(total(rows, "plug-in") - PlugIn(draws).expectation(p).sum()) < 4 * error(rows, "plug-in")
    assert abs(total(rows, "ibs") - exact) < 4 * (len(TOKENS) * WINDOW * np.pi**2 / 6) ** 0.5 / np.log(2)
    argmax = Harmonic(draws).expectation(mode).sum()
    assert abs(total(rows, "harmonic", "argmax") - argmax) < 4 * error(rows, "harmonic", "argmax")
    assert sum(row.never_hit for row in pick(rows, "harmonic", "argmax")) == (mode == 0).sum()


def test_the_jensen_bias_is_stated_and_the_jackknife_removes_it(run):
    """With few draws, over many seeds: the mean softmax is too large by its stated bias."""
    p, _ = per_token()
    exact, names = -np.log2(p).sum(), ("mean-softmax", "mean-softmax-jackknife", "mean-softmax-bias")
    totals = np.array(
        [
            [total(rows, name) for name in names]
            for seed in range(60)
            for rows in [run(Mixture(), task(TOKENS, WINDOW, draws=30, seed=seed))]
        ]
    )
    plain, jackknife, bias = totals.mean(axis=0)
    error = totals.std(axis=0, ddof=1) / len(totals) ** 0.5
    assert bias > 4 * error[2]
    assert abs(plain - exact - bias) < 4 * error[0] + 0.3 * bias
    assert abs(jackknife - exact) < abs(plain - exact) / 2 + 4 * error[1]


def test_the_likelihood_of_windows_is_that_of_one_noise_draw_per_window(run):
    draws = 3000
    rows = run(Mixture(), task(TOKENS, WINDOW, draws=draws))
    p = np.exp(window_nats())
    mean = WEIGHT * p[0] + (1 - WEIGHT) * p[1]
    spread = WEIGHT * (1 - WEIGHT) * (p[0] - p[1]) ** 2 / draws / (mean * np.log(2)) ** 2
    assert abs(total(rows, WINDOW_LIKELIHOOD, "window") - window_bits()) < 4 * spread.sum() ** 0.5
    assert abs(window_bits() + np.log2(per_token()[0]).sum()) > 20 * spread.sum() ** 0.5
    assert {row.estimand for row in pick(rows, WINDOW_LIKELIHOOD, "window")} == {"window"}


def test_a_generator_that_ignores_its_noise_answers_both_questions_alike(run):
    class Deaf(Mixture):
        def components(self, windows):
            p, mode = super().components(windows)
            return p[[0, 0]], mode[[0, 0]]

    rows = run(Deaf(), task(TOKENS, WINDOW, draws=10))
    exact = -np.log2(distributions(TRIGRAM, TOKENS, WINDOW)[np.arange(85), TOKENS]).sum()
    assert total(rows, "mean-softmax") == pytest.approx(exact, rel=1e-9)
    assert total(rows, WINDOW_LIKELIHOOD, "window") == pytest.approx(exact, rel=1e-9)
    assert error(rows, "mean-softmax") == pytest.approx(0, abs=1e-6)


def test_noise_that_a_window_shares_is_in_the_stated_variance(run):
    """Positions of a window share their noise, so their variances do not simply add."""
    runs, tokens = 150, TOKENS[:40]
    estimators = ("mean-softmax", "harmonic", "plug-in")
    found = [
        run(Mixture(), task(tokens, WINDOW, block=20, draws=300, seed=seed, estimators=estimators))
        for seed in range(runs)
    ]
    for name in ("mean-softmax", "harmonic"):
        spread = np.var([total(rows, name) for rows in found], ddof=1)
        stated = np.mean([error(rows, name) ** 2 for rows in found])
        assert spread / stated == pytest.approx(1, abs=4 * (2 / runs) ** 0.5), name


@pytest.mark.parametrize("block", [10, 13, 40, 85, 100])
def test_blocks_may_cut_windows(run, block):
    """Random numbers belong to windows, so every way to cut the text gives the same sums."""
    whole = run(Mixture(), task(TOKENS, WINDOW, block=85, draws=100))
    parts = run(Mixture(), task(TOKENS, WINDOW, block=block, draws=100), workers=3)
    for name in ("mean-softmax", "harmonic", "plug-in", "ibs", "smoothed", WINDOW_LIKELIHOOD):
        assert total(parts, name) == pytest.approx(total(whole, name), rel=1e-12), name
    assert sum(row.tokens for row in pick(parts, "harmonic")) == 85


def test_an_impossible_window_has_infinite_bits(run):
    class Impossible(Mixture):
        def components(self, windows):
            p, mode = super().components(windows)
            return np.where(windows == 0, 0.0, p), mode

    rows = run(Impossible(), task(TOKENS, WINDOW, draws=10))
    assert total(rows, WINDOW_LIKELIHOOD, "window") == np.inf
    assert np.isfinite(total(rows, "mean-softmax"))
    assert np.isfinite(error(rows, "mean-softmax"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda p, mode: (p[0], mode), r"shapes \[\(1, 10\), \(50, 1, 10\)\]"),
        (lambda p, mode: (p, mode[:, :, :5]), "shapes"),
        (lambda p, mode: (p[:-1], mode[:-1]), r"\(49, 1, 10\)"),
        (lambda p, _: p, "shapes"),
        (lambda p, mode: (p, mode, mode), "shapes"),
        (lambda p, mode: (p * np.nan, mode), "NaN"),
        (lambda p, mode: (p - 1, mode), "outside 0 to 1"),
        (lambda p, mode: (p + 1, mode), "outside 0 to 1"),
        (lambda p, mode: (-np.log(p) * np.inf, mode), "outside 0 to 1"),
    ],
)
def test_what_is_no_probability_gets_one_sentence(run, answer, said):
    class Wrong(Mixture):
        def gold(self, windows, draws, rng):
            return answer(*super().gold(windows, draws, rng))

    with pytest.raises(GeneratorError, match=said):
        run(Wrong(), task(TOKENS, WINDOW))


def test_answers_may_be_lists_and_single_precision(run):
    class Plain(Mixture):
        def gold(self, windows, draws, rng):
            p, mode = super().gold(windows, draws, rng)
            return p.astype(np.float32).tolist(), mode.tolist()

    wanted = task(TOKENS, WINDOW)
    plain, usual = run(Plain(), wanted), run(Mixture(), wanted)
    assert total(plain, "mean-softmax") == pytest.approx(total(usual, "mean-softmax"), rel=1e-6)
