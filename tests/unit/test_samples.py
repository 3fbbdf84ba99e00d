from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from latent import Finite
from measuring import VOCABULARY, Drawing
from scipy import stats

from ganlm.corpus import Alphabet
from ganlm.generator import Explicit, GeneratorError, Surroundings
from ganlm.models import command, ngram
from ganlm.models.ngram import NGram
from ganlm.models.uniform import Uniform
from ganlm.randomness import keyed_rng
from ganlm.samples import LINE_BREAKS, ROWS_AT_ONCE, draw, lines

ROOT = Path(__file__).parents[2]
LETTERS, LENGTH, COUNT = 3, 3, 20 * ROWS_AT_ONCE + 5
BY_CHANCE = 1e-3
TRIGRAM = NGram.train(np.random.default_rng(1).geometric(0.5, 200) % LETTERS, LETTERS, ngram.Settings(3))


class Emitting(Drawing):
    """A generator that has its own way of emitting texts."""

    def __init__(self, drawn):
        self.vocabulary = VOCABULARY
        self.drawn = drawn

    def sample(self, rows, length, rng):  # noqa: ARG002
        return self.drawn


class Undecided(Explicit):
    """Its distributions are not numbers."""

    vocabulary = VOCABULARY

    def start(self, rows):
        return rows

    def predict(self, state):
        return np.full((state, VOCABULARY), np.nan)

    def feed(self, state, tokens):  # noqa: ARG002
        return state


@pytest.mark.parametrize("model", [TRIGRAM, Drawing(TRIGRAM)], ids=["explicit", "sampled"])
def test_samples_follow_the_distribution_whatever_is_known_of_it(model):
    samples = draw(model, COUNT, LENGTH, keyed_rng(3))
    outcomes = np.stack(np.unravel_index(np.arange(LETTERS**LENGTH), [LETTERS] * LENGTH), axis=1)
    expected = np.exp2(-TRIGRAM.surprisal(TRIGRAM.start(len(outcomes)), outcomes)[0].sum(axis=1))
    observed = np.bincount(samples @ [9, 3, 1], minlength=len(outcomes))
    assert observed.sum() == COUNT
    assert (expected * COUNT).min() > 5
    assert stats.chisquare(observed, expected * COUNT).pvalue > BY_CHANCE


@pytest.mark.parametrize("model", [TRIGRAM, Drawing(TRIGRAM)], ids=["explicit", "sampled"])
def test_samples_depend_on_their_random_numbers_and_on_nothing_else(model):
    first, again, other = (draw(model, 20, 30, keyed_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.2


def test_no_text_is_drawn_twice():
    samples = draw(Uniform(27), COUNT, 20, keyed_rng(1))
    assert samples.shape == (COUNT, 20)
    assert len(np.unique(samples, axis=0)) == COUNT


def test_a_sampled_generator_is_asked_once_per_position_for_all_texts():
    model = Drawing(TRIGRAM)
    samples = draw(model, 50, 7, keyed_rng(1))
    assert [{(length, len(ids)) for _, length, ids in asked} for asked in model.record] == [
        {(position, 1)} for position in range(7)
    ]
    answers = np.array([[ids[0] for _, _, ids in asked] for asked in model.record])
    np.testing.assert_array_equal(samples, answers.T)


def test_a_program_is_sampled_through_its_pipe():
    """The letter pairs of a sample are those of the training text, as often as there."""
    text = (ROOT / "examples/training.txt").read_text()
    symbols = tuple(sorted(set(text)))
    parameters = {
        "command": ["perl", str(ROOT / "examples/bigram.pl"), str(ROOT / "examples/training.txt")],
        "reply_seconds": 30,
    }
    generator = command.load(parameters, [], Surroundings(Alphabet(symbols)))
    samples = draw(generator, 300, 20, keyed_rng(1))
    again = draw(generator, 300, 20, keyed_rng(1))
    generator.close()
    np.testing.assert_array_equal(samples, again)
    ids = np.array([symbols.index(character) for character in text])
    known = set(pairwise(ids))
    assert {pair for row in samples for pair in pairwise(row)} <= known
    expected = np.bincount(ids) / len(ids) * len(samples)
    observed = np.bincount(samples[:, -1], minlength=len(symbols))
    groups = np.where(expected > 5, np.arange(len(symbols)), len(symbols))
    counts, means = (np.bincount(groups, each) for each in (observed, expected))
    assert stats.chisquare(counts[means > 0], means[means > 0]).pvalue > BY_CHANCE


def test_a_generator_that_emits_texts_itself_is_let():
    drawn = [[0, 5], [1, 2], [3, 3]]
    assert draw(Emitting(drawn), 3, 2, keyed_rng(1)).tolist() == drawn


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Emitting([[0, 1]]), "answered 1 prefixes instead of 2"),
        (Emitting([[0, 1], [0]]), "answered 1 draws where 2 were asked for"),
        (Emitting([[0, 1], [0, VOCABULARY]]), f"drew {VOCABULARY}; token ids are whole numbers from 0 to 5"),
        (Emitting(None), "answered None, not lists of token ids"),
        (Undecided(), "`predict` answered rows that are no distributions: NaN"),
        (Finite(np.full((2, VOCABULARY + 1, VOCABULARY), np.nan)), "rows that are no distributions: NaN"),
        (Finite(np.full((2, VOCABULARY + 1, VOCABULARY), 0.5)), "rows that are no distributions"),
    ],
    ids=["too few", "too short", "no token", "nothing", "NaN", "NaN with noise", "too likely"],
)
def test_what_cannot_be_sampled_gets_one_sentence(model, sentence):
    with pytest.raises(GeneratorError) as caught:
        draw(model, 2, 2, keyed_rng(1))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_is_a_line_whatever_is_in_it():
    texts = ["", " a b ", "one\r\ntwo\n", LINE_BREAKS]
    shown = lines(texts)
    assert shown.splitlines() == ["", " a b ", "one↵↵two↵", "↵" * len(LINE_BREAKS)]
    assert shown.endswith("\n")


def test_line_breaks_are_those_that_python_knows():
    assert {chr(i) for i in range(0x110000) if len(f"a{chr(i)}b".splitlines()) > 1} == set(LINE_BREAKS)
