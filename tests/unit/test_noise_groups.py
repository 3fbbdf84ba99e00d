import numpy as np
import pytest
from latent import Counted, Finite
from scipy.special import logsumexp

from ganlm.generator import GeneratorError
from ganlm.noise_groups import GROUPS, WALK_DRAWS, group_records, group_sizes, walk
from ganlm.prefix_tree import ROOT, PrefixTree
from ganlm.randomness import keyed_rng, keyed_seed

VOCABULARY, LENGTH, DRAWS, KEY = 6, 5, 30, (1, "model", 3)
RNG = np.random.default_rng(5)
WINDOWS = RNG.choice(VOCABULARY, (200, LENGTH), p=[0.4, 0.2, 0.2, 0.1, 0.06, 0.04]).astype(np.int32)
WINDOWS[-1, 3:] = -1
TREE = PrefixTree.of(WINDOWS)
MODEL = Finite.random(2.0)
MASK = 2**64 - 1


def mixed(x):
    """SplitMix64's finaliser, on Python's integers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def numbers(prefix, count, key):
    """The random numbers that belong to a prefix."""
    golden, state = 0x9E3779B97F4A7C15, 0
    for token in prefix:
        state = mixed((state + (token + 1) * golden) & MASK)
    state = mixed(state ^ keyed_seed(*key, "tokens") & MASK)
    return [(mixed((state + n * golden) & MASK) >> 11) * 2.0**-53 for n in range(1, count + 1)]


def of_each_draw(model, window, draws, key):
    """Probability, hit of a sampled and of the most likely token, and likelihood so far, by position."""
    state = model.start(draws, keyed_rng(*key, "noise"))
    likelihood = np.ones(draws)
    for position, token in enumerate(window):
        p = model.predict(state)
        sampled = []
        for row, number in zip(p, numbers(window[:position], draws, key), strict=True):
            sampled.append(int(np.searchsorted(np.cumsum(row), number * row.sum(), side="right")))
        likelihood = likelihood * p[:, token]
        yield p[:, token], np.array(sampled) == token, p.argmax(axis=1) == token, likelihood
        state = model.feed(state, token)


def one_by_one(model, window, walks):
    """What the draws make of each token of one window: no tree, no batch, nothing shared."""
    for parts in zip(*(of_each_draw(model, window, *each) for each in walks), strict=True):
        gold, hits, modes, likelihood = map(np.concatenate, zip(*parts, strict=True))
        firsts = [int(each.argmax()) + 1 if each.any() else 0 for each in (hits, modes)]
        log_likelihood = np.log(likelihood.sum())
        yield gold.sum(), (gold**2).sum(), log_likelihood, hits.sum(), firsts[0], modes.sum(), firsts[1]


@pytest.mark.parametrize(
    ("most", "walks"),
    [(30, [(30, KEY)]), (12, [(10, KEY), (10, (*KEY, 1)), (10, (*KEY, 2))])],
    ids=["one walk", "three walks"],
)
def test_the_tree_gives_what_every_window_on_its_own_gives(most, walks, monkeypatch):
    size, nodes = walks[0][0], len(TREE.inner)
    monkeypatch.setattr("ganlm.noise_groups.BATCH_CELLS", 7 * size * VOCABULARY)
    monkeypatch.setattr("ganlm.noise_groups.WALK_DRAWS", most)
    ticks = []
    records = group_records(MODEL, TREE, DRAWS, KEY, ticks.append)
    for window, reached in zip(WINDOWS, TREE.nodes, strict=True):
        tokens = [int(token) for token in window if token >= 0]
        for node, expected in zip(reached, one_by_one(MODEL, tokens, walks), strict=False):
            assert node != ROOT
            np.testing.assert_allclose(records[node].item(), expected, rtol=1e-12)
    once = np.array([*range(7, nodes, 7), nodes])
    assert ticks == np.concatenate([before * nodes + once for before in range(len(walks))]).tolist()


def test_no_walk_holds_more_draws_however_many_a_group_has():
    class Asked(Finite):
        most = 0

        def start(self, draws, rng):
            self.most = max(self.most, draws)
            return super().start(draws, rng)

    model = Asked(np.full((1, 3, 2), 0.5))
    tree = PrefixTree.of(np.array([[0, 1]], np.int32))
    records = group_records(model, tree, 5 * WALK_DRAWS + 1, KEY, lambda _: None)
    assert (model.started, model.most <= WALK_DRAWS) == (6, True)
    assert records["p"][1:].tolist() == [(5 * WALK_DRAWS + 1) / 2] * 2
    assert group_sizes(GROUPS * WALK_DRAWS).max() == WALK_DRAWS, "one walk per group up to N = 20,000"


def test_each_prefix_is_fed_once():
    model = Finite.random(2.0)
    answers = list(walk(model, TREE, DRAWS, np.random.default_rng(1)))
    assert (model.started, model.fed) == (1, len(TREE.inner) - 1)
    assert len(answers) == len(TREE.inner) < TREE.positions / 2


def test_few_states_are_alive_however_long_the_windows():
    """Random windows part from each other within a few tokens; from there on each has a state or two."""
    windows = np.random.default_rng(2).integers(0, VOCABULARY, (100, 1000)).astype(np.int32)
    tree, model = PrefixTree.of(windows), Counted.random(1.0)
    for _ in walk(model, tree, 4, np.random.default_rng(1)):
        pass
    told_apart = next(n for n in range(1000) if len(np.unique(windows[:, :n], axis=0)) == len(windows))
    assert len(tree.inner) > 90_000
    assert model.most <= told_apart + 2 < 12


def test_a_walk_does_not_depend_on_other_windows():
    part = PrefixTree.of(WINDOWS[50:90])
    whole = group_records(MODEL, TREE, DRAWS, KEY, lambda _: None)
    alone = group_records(MODEL, part, DRAWS, KEY, lambda _: None)
    np.testing.assert_array_equal(whole[TREE.nodes[50:90]], alone[part.nodes])


@pytest.mark.parametrize("draws", [2, 7, 20, 21, 2000, 2013])
def test_groups_are_about_equal_and_hold_all_draws(draws):
    sizes = group_sizes(draws)
    assert sizes.sum() == draws
    assert len(sizes) == min(draws, GROUPS)
    assert sizes.max() - sizes.min() <= 1


def test_single_precision_is_enough():
    single = Finite(MODEL.p.astype(np.float32))
    found, expected = (group_records(m, TREE, DRAWS, KEY, lambda _: None) for m in (single, MODEL))
    np.testing.assert_allclose(found["log_likelihood"], expected["log_likelihood"], rtol=1e-5)


def test_samples_have_one_noise_draw_each():
    """Under a noise that fixes one token for good, texts repeat it, and all tokens are as likely."""
    p = np.eye(4)[:, None].repeat(5, axis=1)
    found = Finite(p).sample(2000, 3, np.random.default_rng(1))
    assert (found == found[:, :1]).all()
    assert np.bincount(found[:, 0], minlength=4) == pytest.approx([500] * 4, abs=80)
    soft = Finite(np.tile([0.1, 0.2, 0.3, 0.4], (1, 5, 1))).sample(500, 4, np.random.default_rng(1))
    assert np.bincount(soft.ravel(), minlength=4) == pytest.approx([200, 400, 600, 800], abs=90)


def test_of_equally_likely_tokens_the_first_is_the_most_likely():
    tree = PrefixTree.of(np.array([[0], [1], [2]], np.int32))
    records = group_records(Finite(np.full((1, 4, 3), 1 / 3)), tree, 10, KEY, lambda _: None)
    assert records["modes"][1:].tolist() == [10, 0, 0]


def test_an_impossible_token_has_no_likelihood():
    p = np.array([[0.5, 0.5, 0.0]]).repeat(4, axis=0)[None]
    records = group_records(Finite(p), PrefixTree.of(np.array([[2, 0]], np.int32)), 10, KEY, lambda _: None)
    assert records["log_likelihood"].tolist() == [0, -np.inf, -np.inf]
    assert records["p"].tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda p: p[0], r"shape \(6,\), not \(30, 6\)"),
        (lambda p: p[:1], r"shape \(1, 6\), not \(30, 6\)"),
        (lambda p: p[:, :5], "shape"),
        (lambda p: p * np.nan, "no distributions"),
        (lambda p: p - 0.5, "no distributions"),
        (lambda p: 2 * p, "no distributions"),
        (lambda _: None, r"shape \(\), not \(30, 6\)"),
    ],
)
def test_what_is_no_distribution_gets_one_sentence(answer, said):
    class Wrong(Finite):
        def predict(self, state):
            return answer(super().predict(state))

    with pytest.raises(GeneratorError, match=said) as caught:
        group_records(Wrong(MODEL.p), TREE, DRAWS, KEY, lambda _: None)
    assert "\n" not in str(caught.value)


def test_likelihoods_far_below_the_smallest_number_are_kept():
    window = np.zeros((1, 2000), np.int32)
    p = np.full((1, 5, 4), 0.25)
    records = group_records(Finite(p), PrefixTree.of(window), 3, KEY, lambda _: None)
    assert records["log_likelihood"][-1] == pytest.approx(logsumexp([2000 * np.log(0.25)] * 3))
