"""All windows of a text as one tree, so that what they share at their start is computed once.

Rows of windows in lexicographic order have equal prefixes side by side. A node is a distinct prefix, numbered
depth-first: where a sorted row first differs from the one before it, new nodes begin. Node ROOT is the empty
prefix. All work is array work: there is no Python loop over tokens.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from ganlm.splitmix import GOLDEN, mixed

ROOT = 0
ABSENT = -1


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """Distinct prefixes of windows, in depth-first order, and those among them that have a continuation.

    Attributes:
        nodes: the node that each window has reached after each of its tokens; ROOT beyond its end.
        tokens: the last token of each node.
        keys: 64 bits that depend on a node's tokens alone, whatever else is in the tree.
        inner: the nodes with children, where a model is asked for its distribution.
        children: the children of the inner nodes, one after the other.
        first: where the children of each inner node begin, and where the last ones end.
        branches: whether an inner node has inner children.
        last: whether an inner node is the last inner child of its parent.

    """

    nodes: np.ndarray
    tokens: np.ndarray
    keys: np.ndarray
    inner: np.ndarray
    children: np.ndarray
    first: np.ndarray
    branches: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, windows: np.ndarray) -> Self:
        """The tree of windows, shape (rows, length), short ones filled up with ABSENT."""
        order = np.lexsort(windows.T[::-1])
        rows = windows[order]
        new = np.ones(rows.shape, bool)
        new[1:] = np.logical_or.accumulate(rows[1:] != rows[:-1], axis=1)
        new &= rows != ABSENT
        reached = np.where(new, np.cumsum(new, dtype=np.int32).reshape(new.shape), ROOT)
        np.maximum.accumulate(reached, axis=0, out=reached)
        reached[rows == ABSENT] = ROOT
        before = np.concatenate([np.zeros_like(reached[:, :1]), reached[:, :-1]], axis=1)
        parents = np.concatenate([[ABSENT], before[new]])
        tokens = np.concatenate([[ABSENT], rows[new]])
        nodes = np.empty_like(reached)
        nodes[order] = reached
        keys = _keys(tokens, parents, (reached[column, at] for at, column in enumerate(new.T)))
        return cls(nodes, tokens, keys, *_inner(parents))

    @cached_property
    def ends(self) -> np.ndarray:
        """The node at which each window ends."""
        return self.nodes.max(axis=1)

    @property
    def positions(self) -> int:
        """Tokens of all windows: how often a model would be asked without the tree."""
        return int((self.nodes != ROOT).sum())


def _keys(tokens: np.ndarray, parents: np.ndarray, levels: object) -> np.ndarray:
    """A hash of each node's prefix, from the root on."""
    keys = np.zeros(len(tokens), np.uint64)
    for nodes in levels:
        keys[nodes] = mixed(keys[parents[nodes]] + (tokens[nodes] + 1).astype(np.uint64) * GOLDEN)
    return keys


def _inner(parents: np.ndarray) -> tuple[np.ndarray, ...]:
    """The inner nodes, and how they hang together; see the attributes of the tree."""
    children = np.argsort(parents[1:], kind="stable") + 1
    inner, first = np.unique(parents[children], return_index=True)
    above = parents[inner]
    branches = np.isin(inner, above)
    _, from_the_end = np.unique(above[::-1], return_index=True)
    last = np.zeros(len(inner), bool)
    last[len(inner) - 1 - from_the_end] = True
    return inner, children, np.append(first, len(children)), branches, last
