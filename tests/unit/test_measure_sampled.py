from itertools import combinations

import numpy as np
import pytest
from measuring import TEST, TRIGRAM, VOCABULARY, Drawing, distributions, error, pick, task, total

from ganlm.estimators import PlugIn, Smoothed
from ganlm.generator import GeneratorError, Sampled
from ganlm.measure_sampled import measure
from ganlm.measurement import tasks
from ganlm.resume import Journal

WINDOW = 17


@pytest.fixture
def run(tmp_path):
    """Measure with a journal of its own each time."""

    def run(model, wanted, workers=1):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.resume"
        return measure(model, wanted, Journal(path, "key"), workers)

    return run


def gold(tokens=TEST, window=WINDOW):
    return distributions(TRIGRAM, tokens, window)[np.arange(len(tokens)), tokens]


def harmonic_number(n):
    return sum(1 / j for j in range(1, n + 1))


def test_estimates_agree_with_the_exact_bits(run):
    rows = run(Drawing(TRIGRAM), task(TEST, WINDOW, draws=600, cap=20_000))
    p = gold()
    for name in ("harmonic", "ibs", "rb-ibs"):
        assert abs(total(rows, name) + np.log2(p).sum()) < 4 * error(rows, name), name
    for estimator in (PlugIn(600), Smoothed(600, alphabet_size=VOCABULARY)):
        spread = estimator.variance(p).sum() ** 0.5
        assert abs(total(rows, estimator.name) - estimator.expectation(p).sum()) < 4 * spread
    q = distributions(TRIGRAM, TEST, WINDOW)
    score = (2 * p - (q**2).sum(axis=1)).sum()
    assert total(rows, "brier") == pytest.approx(score, abs=4 * (2 / 600 * len(TEST)) ** 0.5)
    assert error(rows, "harmonic") < error(rows, "ibs") / 5


def test_the_stated_variance_is_the_spread_over_seeds(run):
    runs, tokens = 120, TEST[:30]
    model = Drawing(TRIGRAM)
    found = [run(model, task(tokens, WINDOW, draws=60, cap=20_000, seed=seed)) for seed in range(runs)]
    for name in ("harmonic", "ibs", "rb-ibs"):
        spread = np.var([total(rows, name) for rows in found], ddof=1)
        stated = np.mean([error(rows, name) ** 2 for rows in found])
        assert spread / stated == pytest.approx(1, abs=4 * (2 / runs) ** 0.5), name


def streams(model):
    """What was drawn at each position of a block, in order, from the record."""
    drawn = {}
    for request in model.record:
        for window, length, ids in request:
            drawn.setdefault((window, length), []).extend(ids.tolist())
    return [drawn[key] for key in sorted(drawn)]


def test_statistics_are_those_of_the_streams(run):
    """Every estimator again, from the recorded draws and its definition."""
    draws, cap, tokens = 8, 100, TEST[:40]
    model = Drawing(TRIGRAM)
    rows = run(model, task(tokens, WINDOW, block=40, draws=draws, cap=cap))
    expected = dict.fromkeys(("plug-in", "harmonic", "ibs", "rb-ibs", "brier"), 0.0)
    missed, drawn = dict.fromkeys(expected, 0), dict.fromkeys(expected, 0)
    assert len(streams(model)) == 40
    for stream, token in zip(streams(model), tokens.tolist(), strict=True):
        k = stream[:draws].count(token)
        first = stream.index(token) + 1 if token in stream else None
        harmonic = harmonic_number(draws) - harmonic_number(k)
        expected["plug-in"] -= np.log2(max(k / draws, 1e-20))
        expected["harmonic"] += harmonic / np.log(2)
        expected["ibs"] += harmonic_number((first or cap) - 1) / np.log(2)
        late = harmonic_number((first or cap) - 1)
        expected["rb-ibs"] += (harmonic if k else late) / np.log(2)
        pairs = [(a == token) + (b == token) - (a == b) for a, b in combinations(stream[:draws], 2)]
        expected["brier"] += np.mean(pairs)
        for name in ("plug-in", "harmonic", "brier"):
            missed[name] += k == 0
            drawn[name] += draws
        missed["ibs"] += first is None
        missed["rb-ibs"] += first is None
        drawn["ibs"] += first or cap
        drawn["rb-ibs"] += draws if k else first or cap
    assert missed["harmonic"] > 0
    for name, value in expected.items():
        (row,) = pick(rows, name)
        assert row.total == pytest.approx(value, rel=1e-9), name
        assert (row.never_hit, row.drawn) == (missed[name], drawn[name]), name


@pytest.mark.parametrize("estimators", [("ibs",), ("ibs", "harmonic"), ("rb-ibs",), ("harmonic", "brier")])
def test_positions_that_were_hit_retire(run, estimators):
    draws, cap, tokens = 8, 300, TEST[:40]
    model = Drawing(TRIGRAM)
    wanted = task(tokens, WINDOW, block=40, draws=draws, cap=cap, estimators=estimators)
    run(model, wanted)
    until_hit = {"ibs", "rb-ibs"} & set(estimators)
    at_least = draws if set(estimators) - {"ibs"} else 0
    limit = wanted.estimator("rb-ibs").cap if "rb-ibs" in estimators else cap
    seen = dict.fromkeys(range(40), 0)
    for request in model.record:
        for window, length, ids in request:
            position = window * WINDOW + length
            assert (
                seen[position] < at_least
                or tokens[position] not in streams(model)[position][: seen[position]]
            )
            seen[position] += len(ids)
    assert all(at_least <= n <= (limit if until_hit else draws) for n in seen.values())
    for stream, token in zip(streams(model), tokens, strict=True):
        if until_hit:
            assert token in stream or len(stream) == limit
        assert len(stream) < 2 * max(stream.index(token) + 1 if token in stream else limit, at_least, 4)


class Never(Sampled):
    """Draws anything but token 0."""

    vocabulary = VOCABULARY

    def draw(self, _, counts, rng):
        return [rng.integers(1, VOCABULARY, count) for count in counts]


@pytest.mark.parametrize("cap", [5, 64, 100])
def test_what_is_never_hit_is_counted_and_costs_the_cap(run, cap):
    """The cap may also be less than the draws that others need."""
    draws, wanted = 40, task(TEST, WINDOW, draws=40, cap=cap)
    rows = run(Never(), wanted)
    zeros = int((TEST == 0).sum())
    rb_cap = wanted.estimator("rb-ibs").cap
    for name, limit in [("ibs", cap), ("rb-ibs", rb_cap), ("harmonic", draws)]:
        missed = sum(row.never_hit for row in pick(rows, name))
        assert zeros <= missed <= zeros + 4 + (len(TEST) - zeros) * 0.8**limit * 1.5, name
    hopeless = run(Never(), task(np.zeros(30, np.uint8), 5, cap=cap))
    assert total(hopeless, "ibs") == pytest.approx(30 * harmonic_number(cap - 1) / np.log(2))
    assert sum(row.drawn for row in pick(hopeless, "ibs")) == 30 * cap


def test_the_mixture_is_finite_and_unbiased_where_the_generator_never_draws_the_token(run):
    tokens, weight = np.zeros(300, np.uint8), 0.3
    rows = run(Never(), task(tokens, 10, mixture=weight, cap=5, estimators=("ibs",)))
    exact = -300 * np.log2(weight / VOCABULARY)
    assert abs(total(rows, "ibs", "mixture-0.3") - exact) < 4 * error(rows, "ibs", "mixture-0.3")
    assert sum(row.never_hit for row in pick(rows, "ibs", "mixture-0.3")) == 0
    assert sum(row.never_hit for row in pick(rows, "ibs")) == 300


def test_the_mixture_of_a_known_model_has_its_exact_bits(run):
    rows = run(Drawing(TRIGRAM), task(TEST, WINDOW, mixture=0.2, cap=5000, estimators=("ibs",)))
    exact = -np.log2(0.8 * gold() + 0.2 / VOCABULARY).sum()
    assert abs(total(rows, "ibs", "mixture-0.2") - exact) < 4 * error(rows, "ibs", "mixture-0.2")


def comparable(rows):
    """Rows in one order; repr, because nan is not equal to itself."""
    return sorted(map(repr, rows))


def test_results_depend_on_the_seed_and_on_nothing_else(run):
    wanted = task(TEST, WINDOW, block=10, mixture=0.1)
    alone = run(Drawing(TRIGRAM), wanted)
    assert comparable(run(Drawing(TRIGRAM), wanted)) == comparable(alone)
    assert comparable(run(Drawing(TRIGRAM), wanted, workers=4)) == comparable(alone)
    shards = [
        row
        for index in range(1, 9)
        for part in tasks("model", "sampled", wanted.text, [WINDOW], wanted.settings, (index, 8))
        for row in run(Drawing(TRIGRAM), part)
    ]
    assert comparable(shards) == comparable(alone)
    other = run(Drawing(TRIGRAM), task(TEST, WINDOW, block=10, mixture=0.1, seed=2))
    assert total(other, "harmonic") != total(alone, "harmonic")


def test_only_the_subset_is_drawn(run):
    wanted = task(TEST, WINDOW, block=10, characters=30)
    (part,) = tasks("model", "sampled", wanted.text, [WINDOW], wanted.settings, (1, 1))
    (other,) = tasks("another", "sampled", wanted.text, [WINDOW], wanted.settings, (1, 1))
    assert part.blocks == other.blocks
    assert len(part.blocks) == 3
    assert {row.block for row in run(Drawing(TRIGRAM), part)} == set(part.blocks)


class Answers(Sampled):
    """Answers what it is told to."""

    vocabulary = VOCABULARY

    def __init__(self, answer):
        self.answer = answer

    def draw(self, _, counts, __):
        return self.answer(counts)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda counts: [[VOCABULARY] * n for n in counts],
            "drew 6; token ids are whole numbers from 0 to 5",
        ),
        (lambda counts: [[-1] * n for n in counts], "drew -1"),
        (lambda counts: [[1.0] * n for n in counts], r"drew 1\.0"),
        (lambda counts: [[1, 0.5] * (n // 2) for n in counts], r"drew 0\.5"),
        (lambda counts: [[float("nan")] * n for n in counts], "drew nan"),
        (lambda counts: [[True] * n for n in counts], "drew True"),
        (lambda counts: [["a"] * n for n in counts], "drew 'a'"),
        (lambda counts: [[None] * n for n in counts], "drew None"),
        (lambda counts: [[2**70] * n for n in counts], f"drew {2**70}"),
        (lambda counts: [[0] * (n - 1) for n in counts], "49 draws where 50 were asked for"),
        (lambda counts: [[0] * n for n in counts][1:], "24 prefixes instead of 25"),
        (lambda counts: [[[0], [0, 1]] * n for n in counts], "not lists of token ids"),
        (lambda _: None, "answered None, not lists of token ids"),
        (lambda _: 3, "answered 3, not lists"),
        (lambda counts: [0 for _ in counts], "1 draws where 50"),
    ],
)
def test_what_is_no_draw_gets_one_sentence(run, answer, said):
    with pytest.raises(GeneratorError, match=said) as caught:
        run(Answers(answer), task(TEST, WINDOW))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_ids_may_have_any_integer_type(run, dtype):
    plain = run(Answers(lambda counts: [[2] * n for n in counts]), task(TEST, WINDOW))
    typed = run(Answers(lambda counts: [np.full(n, 2, dtype) for n in counts]), task(TEST, WINDOW))
    assert comparable(typed) == comparable(plain)


def test_arithmetic_on_prefixes_does_not_wrap(run):
    """A generator may number its contexts: 5 · 100 must not become 244 because ids are stored in bytes."""

    class Numbers(Sampled):
        vocabulary = VOCABULARY

        def draw(self, prefixes, counts, _):
            assert all(np.unique(prefix * 100).tolist() in ([], [500]) for prefix in prefixes)
            return [np.zeros(count, int) for count in counts]

    run(Numbers(), task(np.full(40, 5, np.uint8), WINDOW, estimators=("harmonic",)))
