"""Random numbers that depend on what they are for, not on when they are drawn."""

import hashlib

import numpy as np


def keyed_seed(*key: object) -> int:
    """128 bits that any change of the key changes."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:16])


def keyed_rng(*key: object) -> np.random.Generator:
    """A generator for one purpose, e.g. (seed, model, protocol, block): equal keys, equal numbers.

    Work can then be done in any order, in any number of pieces, or again, with the same result.
    """
    return np.random.default_rng(keyed_seed(*key))
