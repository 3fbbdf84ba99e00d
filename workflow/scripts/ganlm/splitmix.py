"""Random numbers by counting: equal keys give equal numbers, many keys at once.

SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) is a bijective mixing of a counter, so that a stream needs no
state: its n-th number is a function of its key and n. NumPy's generators would need a new object per key,
which costs more than the numbers.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(x: np.ndarray) -> np.ndarray:
    """Each 64-bit word scrambled, a bijection: any change of a bit changes about half of them."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def words(keys: np.ndarray, count: int) -> np.ndarray:
    """The first `count` 64-bit words of the stream of each key, shape (keys, count)."""
    return mixed(keys[:, None] + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def uniforms(keys: np.ndarray, count: int) -> np.ndarray:
    """The first `count` numbers in [0, 1) of the stream of each key, shape (keys, count)."""
    return (words(keys, count) >> np.uint64(11)) * 2.0**-53
