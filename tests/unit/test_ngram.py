import lzma
import os
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ganlm.corpus import PARTS, Alphabet, CorpusSettings, load_tokens, split_corpus
from ganlm.generator import Explicit, Surroundings
from ganlm.models import ngram
from ganlm.models.ngram import SMOOTHING, NGram, Settings
from ganlm.models.trie import Trie, count_ngrams
from ganlm.models.uniform import Uniform
from ganlm.textfile import read_chunks

BPC_ON_TEXT8_PREFIX = [4.120, 3.433, 2.873, 2.308, 1.946, 1.784, 1.730, 1.726]
PREFIX_BYTES = 74_081_952

smoothings = pytest.mark.parametrize("smoothing", SMOOTHING)
texts = st.integers(1, 5).flatmap(
    lambda vocabulary: st.tuples(
        st.just(vocabulary), st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=40)
    )
)
orders = st.integers(1, 6)


def zipf_text(seed, length=4000, vocabulary=300):
    """Skewed enough for every count of counts n1..n4 to be positive on every level but the lowest."""
    ranks = np.arange(1, vocabulary + 1)
    return np.random.default_rng(seed).choice(vocabulary, length, p=1 / ranks / (1 / ranks).sum())


def counted(text, length):
    """Occurrences of each n-gram, by slicing."""
    return Counter(tuple(text[i : i + length]) for i in range(len(text) - length + 1))


def followers(counts):
    """context -> {token: count}."""
    tree = {}
    for gram, count in counts.items():
        tree.setdefault(gram[:-1], {})[gram[-1]] = count
    return tree


def witten_bell_twin(text, order, vocabulary):
    """P(w | h) = (c(hw) + T(h) P(w | h')) / (c(h) + T(h))."""
    tree = {}
    for length in range(1, order + 1):
        tree |= followers(counted(text, length))

    @cache
    def probability(context, token):
        lower = probability(context[1:], token) if context else 1 / vocabulary
        after = tree.get(context)
        if not after:
            return lower
        return (after.get(token, 0) + len(after) * lower) / (sum(after.values()) + len(after))

    return probability


def kneser_ney_twin(text, order, vocabulary):
    """Chen and Goodman (1999), equations 23 to 26; too few counts of counts give discounts of one half."""
    tree, discounts = {}, {}
    for length in range(1, order + 1):
        counts = counted(text, length)
        if length < order:
            left = {gram: set() for gram in counts}
            for longer in counted(text, length + 1):
                left[longer[1:]].add(longer[0])
            counts = {gram: len(neighbours) or 1 for gram, neighbours in left.items()}
        tree |= followers(counts)
        n = Counter(counts.values())
        discounts[length] = [0, 0.5, 0.5, 0.5]
        if all(n[i] for i in (1, 2, 3, 4)):
            y = n[1] / (n[1] + 2 * n[2])
            chosen = [0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
            if min(chosen[1:]) > 0:
                discounts[length] = chosen

    @cache
    def probability(context, token):
        lower = probability(context[1:], token) if context else 1 / vocabulary
        after = tree.get(context)
        if not after:
            return lower
        discount = discounts[len(context) + 1]
        total = sum(after.values())
        count = after.get(token, 0)
        freed = sum(discount[min(c, 3)] for c in after.values())
        return (count - discount[min(count, 3)]) / total + freed / total * lower

    return probability, discounts


def twin(smoothing, text, order, vocabulary):
    """P(token | context); after fewer than order - 1 tokens Kneser-Ney is the model of that lower order."""
    if smoothing == "witten-bell":
        return witten_bell_twin(text, order, vocabulary)
    by_order = [kneser_ney_twin(text, k, vocabulary)[0] for k in range(1, order + 1)]
    return lambda context, token: by_order[len(context)](context, token)


def twin_bits(probability, text, order):
    return [-np.log2(probability(tuple(text[max(0, i - order + 1) : i]), w)) for i, w in enumerate(text)]


def trained(text, vocabulary, order, smoothing="witten-bell"):
    return NGram.train(np.asarray(text), vocabulary, Settings(order, smoothing))


def bits(model, text):
    return model.surprisal(model.start(1), np.asarray(text)[None])[0][0]


def grams(trie: Trie):
    """Every node spelt out: one {n-gram: count} per level."""
    levels, above = [], [()]
    for level in trie.levels:
        parents, tokens = np.divmod(level.keys, trie.vocabulary)
        above = [(*above[p], int(t)) for p, t in zip(parents, tokens, strict=True)]
        levels.append(dict(zip(above, level.counts.tolist(), strict=True)))
        assert len(levels[-1]) == len(level.keys)
    return levels


@given(texts, orders, st.integers(1, 50))
def test_counts_equal_a_counter_for_any_chunk_size(text, order, chunk):
    vocabulary, tokens = text
    trie = count_ngrams(np.array(tokens, np.uint8), order, vocabulary, chunk)
    expected = [dict(counted(tokens, k)) for k in range(1, min(order, len(tokens)) + 1)]
    assert grams(trie) == expected


@pytest.mark.parametrize(("vocabulary", "order"), [(256, 8), (65_536, 5), (10**6, 6), (2**31, 4), (2**40, 3)])
def test_ngrams_wider_than_64_bits_equal_a_counter(vocabulary, order):
    assert (vocabulary + 1) ** order > 2**63
    rng = np.random.default_rng(5)
    ids = np.array([0, 1, vocabulary // 2, vocabulary - 2, vocabulary - 1])
    text = ids[rng.integers(len(ids), size=3000)]
    trie = count_ngrams(text, order, vocabulary, chunk_tokens=700)
    assert grams(trie) == [dict(counted(text.tolist(), k)) for k in range(1, order + 1)]
    for level in trie.levels:
        assert np.all(np.diff(level.keys) > 0)


@smoothings
def test_large_vocabulary_scores_equal_the_twin(smoothing):
    vocabulary, order = 10**6, 6
    text = (zipf_text(3, length=2500, vocabulary=40) * 25_000 + 999).tolist()
    probability = twin(smoothing, text[:2000], order, vocabulary)
    model = trained(text[:2000], vocabulary, order, smoothing)
    unseen = [0, vocabulary - 1, *text[2000:]]
    np.testing.assert_allclose(bits(model, unseen), twin_bits(probability, unseen, order), rtol=1e-10)


@smoothings
@given(text=texts, order=orders, data=st.data())
@settings(max_examples=60, deadline=None)
def test_scores_equal_the_twin(smoothing, text, order, data):
    vocabulary, tokens = text
    other = data.draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=20))
    probability = twin(smoothing, tokens, order, vocabulary)
    model = trained(tokens, vocabulary, order, smoothing)
    np.testing.assert_allclose(bits(model, other), twin_bits(probability, other, order), rtol=1e-10)


def test_kneser_ney_uses_the_published_discounts():
    text = zipf_text(1).tolist()
    _, discounts = kneser_ney_twin(text, 3, 300)
    assert all(discounts[length] != [0, 0.5, 0.5, 0.5] for length in (2, 3)), "the formula must be at work"
    assert discounts[3][1] < discounts[3][2] < discounts[3][3]
    other = zipf_text(2, 500).tolist()
    model = trained(text, 300, 3, "kneser-ney")
    expected = twin_bits(twin("kneser-ney", text, 3, 300), other, 3)
    np.testing.assert_allclose(bits(model, other), expected, rtol=1e-10)


def test_on_text8_both_equal_their_twin_and_kneser_ney_is_better(sample):
    train, test = sample
    mean = {}
    for smoothing in SMOOTHING:
        expected = twin_bits(twin(smoothing, train.tolist(), 5, 27), test.tolist(), 5)
        measured = bits(trained(train, 27, 5, smoothing), test)
        np.testing.assert_allclose(measured, expected, rtol=1e-10)
        mean[smoothing] = measured.mean()
    assert mean["kneser-ney"] < mean["witten-bell"] - 0.1


def test_unigram_in_closed_form():
    model = trained([0, 0, 0, 1], 4, 1)
    np.testing.assert_allclose(model.predict(model.start(1))[0], np.array([3.5, 1.5, 0.5, 0.5]) / 6)


@smoothings
@given(text=texts, order=orders, data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_context_gives_a_distribution_without_zeros(smoothing, text, order, data):
    vocabulary, tokens = text
    context = data.draw(st.lists(st.integers(0, vocabulary - 1), max_size=order + 2))
    model = trained(tokens, vocabulary, order, smoothing)
    rows = np.array([context, context[::-1]], np.uint8)
    distribution = model.predict(model.feed(model.start(2), rows))
    np.testing.assert_allclose(distribution.sum(axis=1), 1, rtol=1e-12)
    assert distribution.min() > 0


@smoothings
@given(seed=st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_no_token_is_ever_impossible(smoothing, seed):
    """A discount estimated at or below zero would leave nothing for the unseen."""
    rng = np.random.default_rng(seed)
    vocabulary = int(rng.integers(2, 6))
    model = trained(rng.integers(0, vocabulary, rng.integers(6, 40)), vocabulary, 3, smoothing)
    assert np.isfinite(bits(model, rng.integers(0, vocabulary, 100))).all()


@smoothings
@pytest.mark.parametrize("order", [1, 2, 5])
def test_fast_surprisal_equals_the_step_by_step_default(smoothing, order):
    model = trained(zipf_text(1, 500, 20), 20, order, smoothing)
    tokens = np.random.default_rng(2).integers(0, 20, (3, 17))
    state = model.feed(model.start(3), np.random.default_rng(3).integers(0, 20, (3, 2)))
    fast, after = model.surprisal(state, tokens)
    slow, after_slow = Explicit.surprisal(model, state, tokens)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    np.testing.assert_array_equal(after, after_slow)


@smoothings
@given(cuts=st.lists(st.integers(0, 60), max_size=6), order=orders)
@settings(max_examples=40, deadline=None)
def test_a_text_in_pieces_scores_as_in_one(smoothing, cuts, order):
    tokens = zipf_text(4, 60, 10)[None].astype(np.uint8)
    model = trained(zipf_text(5, 300, 10), 10, order, smoothing)
    state, parts = model.start(1), []
    for piece in np.split(tokens, sorted(cuts), axis=1):
        scored, state = model.surprisal(state, piece)
        parts.append(scored)
    whole, end = model.surprisal(model.start(1), tokens)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_array_equal(state, end)


def test_a_window_starts_with_the_lower_orders():
    """Without any context the 4-gram model is the unigram model, after one token the bigram model, ..."""
    text = zipf_text(6, 400, 8)
    window = np.array([0, 1, 0, 0])
    lower = [bits(trained(text, 8, order), window)[order - 1] for order in (1, 2, 3, 4)]
    np.testing.assert_allclose(bits(trained(text, 8, 4), window), lower, rtol=1e-12)


def test_rows_do_not_see_each_other():
    model = trained(zipf_text(7, 400, 8), 8, 4)
    rows = np.random.default_rng(1).integers(0, 8, (5, 9))
    together, _ = model.surprisal(model.start(5), rows)
    np.testing.assert_array_equal(together, [bits(model, row) for row in rows])


@smoothings
@pytest.mark.parametrize(("text", "order"), [([0], 1), ([0], 4), ([2], 8), ([0, 1], 5), ([1, 1, 1], 3)])
def test_texts_shorter_than_the_order(smoothing, text, order, tmp_path):
    model = trained(text, 3, order, smoothing)
    other = [0, 1, 1, 1, 2, 0, 1]
    expected = twin_bits(twin(smoothing, text, order, 3), other, order)
    np.testing.assert_allclose(bits(model, other), expected, rtol=1e-12)
    model.save(tmp_path / "model.safetensors")
    loaded = NGram.load(tmp_path / "model.safetensors", 3, Settings(order, smoothing))
    np.testing.assert_array_equal(bits(loaded, other), bits(model, other))


def test_an_empty_text_is_refused():
    with pytest.raises(ValueError, match="empty text"):
        trained(np.array([], np.uint8), 27, 3)


@smoothings
def test_a_saved_model_scores_identically(smoothing, tmp_path):
    text, other = zipf_text(8, 2000, 50), zipf_text(9, 500, 50)
    model = trained(text, 50, 4, smoothing)
    path = tmp_path / "model.safetensors"
    model.save(path)
    surroundings = Surroundings(Alphabet(tuple(map(str, range(50)))))
    loaded = ngram.load({"kind": "ngram", "order": 4, "smoothing": smoothing}, [str(path)], surroundings)
    np.testing.assert_array_equal(bits(loaded, other), bits(model, other))
    again = tmp_path / "again.safetensors"
    trained(text, 50, 4, smoothing).save(again)
    assert again.read_bytes() == path.read_bytes()


@smoothings
def test_samples_follow_the_distribution(smoothing):
    vocabulary, length = 3, 3
    model = trained(zipf_text(1, 200, vocabulary), vocabulary, 3, smoothing)
    samples = model.sample(20_000, length, np.random.default_rng(12))
    outcomes = np.stack(np.unravel_index(np.arange(vocabulary**length), [vocabulary] * length), axis=1)
    expected = np.exp2(-model.surprisal(model.start(len(outcomes)), outcomes)[0].sum(axis=1))
    observed = np.bincount(samples @ [9, 3, 1], minlength=vocabulary**length)
    assert stats.chisquare(observed, expected * len(samples)).pvalue > 0.01
    same_seed = model.sample(20_000, length, np.random.default_rng(12))
    np.testing.assert_array_equal(samples, same_seed)


def test_uniform_is_log2_of_the_vocabulary():
    model = Uniform(27)
    tokens = np.array([[0, 26, 3]])
    np.testing.assert_allclose(model.surprisal(model.start(1), tokens)[0], np.log2(27))
    np.testing.assert_allclose(Explicit.surprisal(model, model.start(1), tokens)[0], np.log2(27))
    samples = model.sample(9_000, 1, np.random.default_rng(0))
    assert stats.chisquare(np.bincount(samples[:, 0], minlength=27)).pvalue > 0.01


@pytest.fixture(scope="module")
def sample():
    """Train and test ids of the first characters of the bundled text8."""
    path = Path(__file__).parents[2] / "resources/text8-2m.xz"
    text = np.frombuffer(lzma.decompress(path.read_bytes())[:60_000], np.uint8)
    ids = np.where(text == ord(" "), 0, text - ord("a") + 1)
    return ids[:50_000], ids[50_000:]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_published_bpc_on_the_text8_prefix(tmp_path):
    name = os.environ.get("GANLM_TEXT8_PREFIX")
    if not name:
        pytest.skip("GANLM_TEXT8_PREFIX does not name a file with the first 74,081,952 bytes of text8")
    paths = {part: tmp_path / f"{part}.npy" for part in PARTS}
    corpus = split_corpus(read_chunks(Path(name), limit=PREFIX_BYTES), CorpusSettings(), paths)
    assert sum(corpus.tokens.values()) == PREFIX_BYTES
    train, test = load_tokens(paths["train"]), load_tokens(paths["test"])
    measured = [bits(trained(train, 27, order), test).mean() for order in range(1, 9)]
    np.testing.assert_allclose(measured, BPC_ON_TEXT8_PREFIX, atol=0.01)
