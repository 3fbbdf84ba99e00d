import math
from itertools import product

import numpy as np
import pytest

from ganlm.tables import table2
from ganlm.textmetrics import cut, in_test

TEXT = "the cat sat on the mat the cat ran"


def test_shares_by_hand():
    samples = ["the cat sat", "a cat sat on", "the  cat", " the dog "]
    found = {order: in_test(samples, [TEXT], order) for order in (1, 2, 3, 4)}
    assert {order: score["distinct"] for order, score in found.items()} == {1: 6, 2: 5, 3: 3, 4: 1}
    assert found[1]["share"] == 4 / 6, "the cat sat on, not: a dog"
    assert found[2]["share"] == 3 / 5, "the-cat cat-sat sat-on, not: a-cat the-dog"
    assert found[3]["share"] == 2 / 3
    assert found[4]["share"] == 0


def test_distinct_ngrams_count_once_however_often_they_are_written():
    assert in_test(["the the the dog"], [TEXT], 1)["share"] == 0.5


def test_ngrams_never_cross_samples_nor_lines_of_the_reference():
    assert in_test(["mat", "the"], [TEXT], 2)["distinct"] == 0
    assert in_test(["mat the"], [TEXT], 2)["share"] == 1
    assert in_test(["mat the"], ["the cat sat on the mat", "the cat ran"], 2)["share"] == 0


def test_cutting_into_lines_truncates_words_as_the_published_code_does():
    assert cut(TEXT, None) == [TEXT]
    assert cut("the cat sat", 5) == ["the c", "at sa", "t"]
    assert in_test(["cat"], cut("the cat sat", 5), 1)["share"] == 0
    assert in_test(["c at"], cut("the cat sat", 5), 1)["share"] == 1


def test_without_ngrams_there_is_no_share():
    assert math.isnan(in_test(["one", "two"], [TEXT], 3)["share"])
    assert math.isnan(in_test(["one"], [TEXT], 1)["standard_error"]), "one sample has no spread"


def test_the_standard_error_is_the_spread_between_sets_of_samples():
    """Samples of one word of a large vocabulary, half of it known: the share is nearly a mean."""
    rng = np.random.default_rng(1)
    words = ["".join(letters) for letters in product("abcdefghij", repeat=4)]
    known = [" ".join(words[::2])]
    scores = [in_test(rng.choice(words, 200).tolist(), known, 1) for _ in range(300)]
    shares = [score["share"] for score in scores]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.01)
    assert np.mean([score["standard_error"] for score in scores]) == pytest.approx(np.std(shares), rel=0.1)


def test_table_2_shows_the_first_samples_and_states_shares_once():
    samples = [{"model": name, "samples": [f"{name} {k}" for k in range(5)]} for name in ("a", "b")]
    scored = [
        [{"order": 1, "share": 0.25, "standard_error": 0.0123}, {"order": 2, "share": None}],
        [
            {"order": 1, "share": 1.0, "standard_error": None},
            {"order": 2, "share": 0.5, "standard_error": 0.0},
        ],
    ]
    frame = table2(samples, [{"in_test": scores} for scores in scored], 2)
    assert frame.columns.tolist() == ["Model", "Sample", "%-IN-TEST-1", "%-IN-TEST-2"]
    assert frame.to_numpy().tolist() == [
        ["a", "a 0", "25.0 ± 1.2", ""],
        ["", "a 1", "", ""],
        ["b", "b 0", "100.0", "50.0 ± 0.0"],
        ["", "b 1", "", ""],
    ]
