import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ganlm.corpus import PARTS, CorpusSettings, load_tokens, split_corpus
from ganlm.measure_explicit import gold_bits
from ganlm.measurement import EXACT, SAMPLE, Settings, Task, Text, tasks
from ganlm.models import ngram
from ganlm.models.ngram import NGram
from ganlm.models.uniform import Uniform
from ganlm.protocol import Grid, Protocol
from ganlm.tables import Metric

VOCABULARY = 6
RNG = np.random.default_rng(7)
TRAIN = RNG.choice(VOCABULARY, 400, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
TEST = RNG.integers(0, VOCABULARY, 103).astype(np.uint8)
MODEL = NGram.train(TRAIN, VOCABULARY, ngram.Settings(4))


def task(tokens, window, block=10, blocks=None):
    """Exact measurement of some blocks of a text, all of them unless told."""
    wanted = Settings(
        block=block,
        draws=1,
        draws_grid=(),
        cap=1,
        estimators=(),
        pseudocount=0.5,
        mixture=0.0,
        characters=None,
        explicit_characters=None,
        seed=1,
    )
    blocks = range(len(Grid(len(tokens), block))) if blocks is None else blocks
    return Task("model", Text(tokens, "", VOCABULARY), Protocol(window), wanted, blocks)


def scored(model, tokens, window, block=10, **options):
    return np.concatenate([bits for _, bits in gold_bits(model, task(tokens, window, block), **options)])


def by_prediction(model, tokens, window):
    """Bits of each token from a fresh start: feed all that the window holds, then look the token up."""
    bits = []
    for position, token in enumerate(tokens):
        first = 0 if window is None else position - position % window
        state = model.feed(model.start(1), tokens[None, first:position])
        bits.append(-np.log2(model.predict(state)[0, token]))
    return np.array(bits)


@pytest.mark.parametrize("window", [None, 1, 2, 7, 51, 102, 103, 104, 1000])
def test_every_token_gets_its_exact_bits_in_order(window):
    np.testing.assert_allclose(scored(MODEL, TEST, window), by_prediction(MODEL, TEST, window), rtol=1e-12)


@given(
    st.sampled_from([None, 1, 3, 10, 50, 200]), st.integers(1, 250), st.integers(1, 120), st.integers(1, 103)
)
@settings(max_examples=80, deadline=None)
def test_bits_do_not_depend_on_pieces_of_work(window, piece, block, length):
    tokens = TEST[:length]
    np.testing.assert_array_equal(
        scored(MODEL, tokens, window, block, piece_tokens=piece), scored(MODEL, tokens, window)
    )


@given(st.sampled_from([1, 3, 7, 10, 25, 200]), st.integers(1, 60), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_windowed_bits_do_not_depend_on_shards(window, block, shards):
    whole = task(TEST, window, block)
    parts = [
        bits
        for index in range(1, shards + 1)
        for part in tasks("model", "explicit", whole.text, [window], whole.settings, (index, shards))
        for _, bits in gold_bits(MODEL, part)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), scored(MODEL, TEST, window))


def test_a_carried_state_is_never_divided():
    whole = task(TEST, None)
    shards = [
        [part.blocks for part in tasks("m", "explicit", whole.text, ["none"], whole.settings, (i, 3))]
        for i in (1, 2, 3)
    ]
    assert shards == [[list(range(11))], [], []]


def test_pieces_are_no_longer_than_asked_for():
    """Memory is that of one piece, or of one block where that is longer."""
    for block, longest in [(5, 20), (50, 50)]:
        pieces = list(gold_bits(MODEL, task(TEST, 7, block), piece_tokens=20))
        assert max(len(bits) for _, bits in pieces) == longest
        assert [block for blocks, _ in pieces for block in blocks] == list(range(-(-103 // block)))


def test_a_window_forgets_what_stands_before_it():
    """Only the tokens of its own window change a token's bits."""
    other = TEST.copy()
    other[:50] = (other[:50] + 1) % VOCABULARY
    np.testing.assert_array_equal(scored(MODEL, TEST, 10)[50:], scored(MODEL, other, 10)[50:])
    assert (scored(MODEL, TEST, None)[50:53] != scored(MODEL, other, None)[50:53]).all()


def test_each_window_opens_with_the_model_s_own_start():
    unigram = MODEL.predict(MODEL.start(1))[0]
    np.testing.assert_allclose(scored(MODEL, TEST, 10)[::10], -np.log2(unigram[TEST[::10]]), rtol=1e-12)


def test_tokens_may_be_a_mapped_file(tmp_path):
    np.save(tmp_path / "test.npy", TEST)
    mapped = load_tokens(tmp_path / "test.npy")
    for window in (None, 7):
        np.testing.assert_array_equal(scored(MODEL, mapped, window), scored(MODEL, TEST, window))


@given(st.integers(1, 500), st.integers(1, 120), st.integers(1, 9))
def test_blocks_tile_the_text_and_shards_tile_the_blocks(tokens, block, shards):
    grid = Grid(tokens, block)
    spans = [grid.span(number) for number in range(len(grid))]
    assert [position for start, stop in spans for position in range(start, stop)] == list(range(tokens))
    assert all(stop - start == block for start, stop in spans[:-1])
    assert [b for index in range(shards) for b in grid.shard(index, shards)] == list(range(len(grid)))


@pytest.mark.parametrize("window", [None, 7, 10])
@pytest.mark.parametrize("piece", [1, 30, 1000])
def test_rows_are_sums_over_blocks_of_the_text(window, piece):
    """The same blocks under every protocol, so that models and protocols can be compared block by block."""
    whole = task(TEST, window, 25)
    rows = [
        row
        for blocks, bits in gold_bits(MODEL, whole, piece)
        for row in whole.rows(SAMPLE, EXACT, 0, blocks, bits)
    ]
    assert [(row.block, row.tokens) for row in rows] == [(0, 25), (1, 25), (2, 25), (3, 25), (4, 3)]
    expected = [chunk.sum() for chunk in np.split(by_prediction(MODEL, TEST, window), [25, 50, 75, 100])]
    np.testing.assert_allclose([row.total for row in rows], expected, rtol=1e-12)
    assert {(row.protocol, row.unit, row.never_hit) for row in rows} == {(whole.protocol.name, "bits", 0)}


@pytest.mark.parametrize(
    ("given", "window", "name"), [(1000, 1000, "window-1000"), (7, 7, "window-7"), ("none", None, "carried")]
)
def test_protocols_have_names(given, window, name):
    protocol = Protocol.parse(given)
    assert (protocol.window, protocol.name) == (window, name)


@pytest.mark.parametrize("window", [None, 1000])
def test_uniform_needs_log2_27_bits(window):
    assert scored(Uniform(27), TEST, window).mean() == pytest.approx(np.log2(27))


@pytest.mark.parametrize("window", [None, 5])
def test_word_perplexity_from_text_to_table_cell(tmp_path, window):
    """Perplexity is the geometric mean of 1/p, here multiplied out word by word."""
    text = "the cat sat on the mat the dog sat on the cat a cat ran and the dog ran on " * 6
    paths = {part: tmp_path / f"{part}.npy" for part in PARTS}
    corpus = split_corpus([text.encode()], CorpusSettings("word", vocabulary=8, split=(0.6, 0.2, 0.2)), paths)
    train, test = load_tokens(paths["train"]), load_tokens(paths["test"])
    model = NGram.train(train, len(corpus.alphabet), ngram.Settings(2, "kneser-ney"))
    inverse = 1.0
    for position, word in enumerate(test):
        first = position if position == 0 or (window and position % window == 0) else position - 1
        inverse /= model.predict(model.feed(model.start(1), test[None, first:position]))[0, word]
    bits = scored(model, test, window).mean()
    assert np.exp2(bits) == pytest.approx(inverse ** (1 / len(test)), rel=1e-12)
    assert Metric.of_unit(corpus.alphabet.unit).show(bits) == f"{inverse ** (1 / len(test)):.1f}"
    assert np.exp2(bits) < len(corpus.alphabet)
    uniform = scored(Uniform(len(corpus.alphabet)), test, window).mean()
    assert np.exp2(uniform) == pytest.approx(8)
