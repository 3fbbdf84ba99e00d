import numpy as np
from scipy import stats

from ganlm.splitmix import mixed, uniforms, words


def test_the_stream_is_the_published_one():
    """First five outputs of the reference implementation (Vigna's splitmix64.c) for this seed."""
    assert words(np.array([1234567], np.uint64), 5).tolist() == [
        [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ]
    ]


def test_numbers_are_uniform_within_a_stream_and_across_streams():
    numbers = uniforms(mixed(np.arange(500, dtype=np.uint64)), 400)
    assert numbers.shape == (500, 400)
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(numbers[:, 0], "uniform").pvalue > 1e-3
    for one, other in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / one.size**0.5


def test_a_stream_depends_on_its_key_alone():
    keys = np.array([5, 2**63 + 1, 0], np.uint64)
    np.testing.assert_array_equal(uniforms(keys, 7)[1:2], uniforms(keys[1:2], 9)[:, :7])
