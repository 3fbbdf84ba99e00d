import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganlm.prefix_tree import ABSENT, ROOT, PrefixTree

BUNDLED = Path(__file__).parents[2] / "resources/text8-2m.xz"


def prefix(row, length):
    return tuple(int(token) for token in row[:length])


def whole(row):
    return tuple(int(token) for token in row if token != ABSENT)


@st.composite
def window_sets(draw):
    length = draw(st.integers(1, 6))
    rows = draw(
        st.lists(st.lists(st.integers(0, 2), min_size=length, max_size=length), min_size=1, max_size=15)
    )
    windows = np.array(rows, np.int32)
    windows[-1, draw(st.integers(1, length)) :] = ABSENT
    return windows


@given(window_sets())
def test_nodes_are_the_distinct_prefixes_depth_first(windows):
    tree = PrefixTree.of(windows)
    name = {ROOT: ()}
    for row, nodes in zip(windows, tree.nodes, strict=True):
        for position, token in enumerate(row):
            if token == ABSENT:
                assert nodes[position] == ROOT
            else:
                assert name.setdefault(int(nodes[position]), prefix(row, position + 1)) == prefix(
                    row, position + 1
                )
    expected = sorted({whole(row)[:n] for row in windows for n in range(len(whole(row)) + 1)})
    assert [name[node] for node in range(len(name))] == expected, "a prefix sorts before what continues it"
    assert tree.tokens[1:].tolist() == [each[-1] for each in expected[1:]]
    assert [name[node] for node in tree.ends] == [whole(row) for row in windows]
    assert tree.positions == sum(len(whole(row)) for row in windows)


@given(window_sets())
def test_inner_nodes_know_their_children(windows):
    tree = PrefixTree.of(windows)
    name = {ROOT: ()}
    for row, nodes in zip(windows, tree.nodes, strict=True):
        name |= {int(node): prefix(row, n) for n, node in enumerate(nodes, start=1) if node != ROOT}
    children = {node: [c for c in name if c and name[c][:-1] == name[node]] for node in name}
    inner = [node for node in sorted(name) if children[node]]
    assert tree.inner.tolist() == inner
    for at, node in enumerate(inner):
        assert tree.children[tree.first[at] : tree.first[at + 1]].tolist() == sorted(children[node])
        assert tree.branches[at] == any(child in inner for child in children[node])
        if node != ROOT:
            (parent,) = (other for other in inner if node in children[other])
            assert tree.last[at] == (node == max(child for child in children[parent] if child in inner))


def test_keys_depend_on_the_prefix_alone():
    windows = np.random.default_rng(1).integers(0, 5, (300, 4), dtype=np.int32)
    tree, part = PrefixTree.of(windows), PrefixTree.of(windows[120:200])
    np.testing.assert_array_equal(tree.keys[tree.nodes[120:200]], part.keys[part.nodes])
    assert len(set(tree.keys.tolist())) == len(tree.keys)


@pytest.mark.parametrize(("characters", "less"), [(100_000, 3.5), (2_000_000, 10)])
def test_windows_of_seven_of_real_text_share_most_of_their_work(characters, less):
    """The test part of the demo is the last 100,000 characters."""
    text = np.frombuffer(lzma.decompress(BUNDLED.read_bytes()), np.uint8)[-characters:]
    windows = text[: len(text) // 7 * 7].reshape(-1, 7).astype(np.int32)
    tree = PrefixTree.of(windows)
    distinct = 1 + sum(len(set(map(bytes, windows[:, :n].astype(np.uint8)))) for n in range(1, 7))
    assert len(tree.inner) == distinct
    assert tree.positions / len(tree.inner) > less
