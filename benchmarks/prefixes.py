"""How much work equal prefixes save: positions of all windows against the distinct prefixes among them.

    python benchmarks/prefixes.py results/text8-74m

Counts alone, the same on any machine. A generator with noise reads each distinct prefix once per draw.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from workbench import Line, print_table

from ganlm.corpus import load_tokens
from ganlm.prefix_tree import PrefixTree

CHARACTERS = 100_000


def arguments() -> argparse.Namespace:
    """Which text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a run whose corpus has been split")
    parser.add_argument("--window", type=int, default=7)
    return parser.parse_args()


def lines(tokens: np.ndarray, window: int) -> Iterator[Line]:
    """The start of the test part, and all of it."""
    for name, length, required in (("the first", CHARACTERS, 3.5), ("all", len(tokens), 10)):
        windows = tokens[: length - length % window].reshape(-1, window)
        tree = PrefixTree.of(windows.astype(np.int32))
        positions, prefixes = tree.positions, len(tree.inner)
        ratio = positions / prefixes
        what = f"{name} {positions:,} positions over {prefixes:,} prefixes, windows of {window}"
        yield Line(what, f"{ratio:.2f}", f"at least {required}", ratio >= required)


if __name__ == "__main__":
    wanted = arguments()
    print_table(lines(load_tokens(wanted.results / "corpus" / "test.npy"), wanted.window))
