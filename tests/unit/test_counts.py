import numpy as np
import pytest
from measuring import task, whole

from ganlm.corpus import Alphabet
from ganlm.generator import GeneratorError, Surroundings
from ganlm.measure_counts import measure
from ganlm.measurement import tasks
from ganlm.models import counts

SURROUNDINGS = Surroundings(Alphabet(tuple("abcdef")))
HEADER = f"# ganlm counts, version 1, test sha256 {'0' * 64}, window 10\n"
TOKENS = np.zeros(50, np.uint8)
WANTED = task(TOKENS, 10, block=10)


@pytest.fixture
def table(tmp_path):
    """Load a table with that text."""

    def table(text):
        path = tmp_path / "counts.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return counts.load({"file": str(path)}, [str(path)], SURROUNDINGS)

    return table


def lines(positions, n=20, k=3):
    return "".join(f"{position},{n},{k}\n" for position in positions)


def harmonic(n, k):
    return sum(1 / j for j in range(k + 1, n + 1)) / np.log(2)


def test_bits_are_those_of_the_counts(table):
    """By hand: H_20 - H_k and -log2 k/20, positions in any order, blocks that are not whole left out."""
    text = lines(range(10, 19)) + lines([19], k=0) + lines(range(40, 50), k=20) + lines([5, 20, 21])
    shuffled = "".join(np.random.default_rng(1).permutation(text.splitlines(keepends=True)))
    rows = whole(measure(table(HEADER + "position,n,k\n" + shuffled), WANTED, None, 1))
    found = {(row.estimator, row.block): row for row in rows}
    assert set(found) == {(name, block) for name in ("plug-in", "smoothed", "harmonic") for block in (1, 4)}
    assert found["harmonic", 1].total == pytest.approx(9 * harmonic(20, 3) + harmonic(20, 0))
    assert found["harmonic", 4].total == pytest.approx(0, abs=1e-12)
    assert found["plug-in", 1].total == pytest.approx(-9 * np.log2(3 / 20) + 20 * np.log2(10))
    assert found["smoothed", 1].total == pytest.approx(-9 * np.log2(3.5 / 23) - np.log2(0.5 / 23))
    row = found["harmonic", 1]
    assert (row.draws, row.drawn, row.never_hit, row.tokens, row.unit) == (20, 200, 1, 10, "bits")
    assert row.variance == pytest.approx(
        (9 * sum(1 / j**2 for j in range(4, 21)) + sum(1 / j**2 for j in range(1, 21))) / np.log(2) ** 2
    )


def test_a_last_block_that_is_shorter_counts_as_whole(table):
    rows = measure(
        table(HEADER + "position,n,k\n" + lines(range(40, 45))), task(TOKENS[:45], 10, block=10), None, 1
    )
    assert {(row.block, row.tokens) for row in whole(rows)} == {(4, 5)}


@pytest.mark.filterwarnings("ignore:Length of header")
def test_a_field_too_many_does_not_shift_the_others(table):
    model = table(HEADER + "position,n,k\n3,20,4,7\n5,20,6,7\n")
    assert (model.positions.tolist(), model.draws, model.hits.tolist()) == ([3, 5], 20, [4, 6])


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_shards_that_the_table_does_not_reach_are_empty(table, shards):
    model = table(HEADER + "position,n,k\n" + lines(range(10, 20)))
    rows = [
        row
        for index in range(1, shards + 1)
        for part in tasks("model", model.strength, WANTED.text, [10], WANTED.settings, (index, shards))
        for row in whole(measure(model, part, None, 1))
    ]
    assert [row.block for row in rows] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("position,n,k\n" + lines([1]), "the first line is not `# ganlm counts, version 1"),
        (HEADER.replace("version 1", "version 2") + "position,n,k\n1,2,1\n", "the first line"),
        (HEADER.replace("0" * 64, "beef") + "position,n,k\n1,2,1\n", "the first line"),
        (HEADER.replace("window 10", "window none") + "position,n,k\n1,2,1\n", "the first line"),
        ("", "the first line"),
        (b"\xff\xfe\x00binary", "the first line"),
        (HEADER, "not a table of whole numbers"),
        (HEADER + "position,n,k\n", "with at least one row"),
        (HEADER + "n,position,k\n" + lines([1]), "the columns must be position,n,k"),
        (HEADER + lines([1, 2]), "the columns must be position,n,k"),
        (HEADER + "position,n,k,model\n1,20,3,7\n", "the columns must be position,n,k"),
        (HEADER + "position,n,k\n1,20,3\n2,20,3,7,8\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n1,20,three\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n1,20,0.15\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n1,20,\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n1,20,nan\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n99999999999999999999,20,1\n", "not a table of whole numbers"),
        (HEADER + "position,n,k\n" + lines([1]) + lines([2], n=30), r"need one n, not \[20, 30\]"),
        (HEADER + "position,n,k\n" + lines([1, 2], k=21), r"row \{'position': 1, 'n': 20, 'k': 21\}"),
        (HEADER + "position,n,k\n" + lines([1], k=-1), "impossible"),
        (HEADER + "position,n,k\n" + lines([-1]), "impossible"),
        (HEADER + "position,n,k\n" + lines([1], n=0, k=0), "impossible"),
        (HEADER + "position,n,k\n" + lines([1, 2, 1]), r"repeated row \{'position': 1,"),
    ],
)
def test_what_is_no_table_of_counts_gets_one_sentence(table, tmp_path, text, said):
    with pytest.raises(GeneratorError, match=said) as caught:
        table(text)
    assert str(caught.value).startswith(f"{tmp_path}/counts.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "positions", "said"),
    [
        (
            HEADER.replace("0" * 64, "a" * 64),
            range(10),
            f"sha256 {'a' * 64}, but the test part has {'0' * 64}",
        ),
        (HEADER.replace("window 10", "window 7"), range(10), "windows of 7, not under window-10"),
        (HEADER, range(45, 51), "position 50, past the end"),
        (HEADER, range(5, 14), "covers no block of 10 tokens whole"),
    ],
)
def test_counts_of_another_text_are_refused(table, header, positions, said):
    model = table(header + "position,n,k\n" + lines(positions))
    with pytest.raises(GeneratorError, match=said):
        measure(model, WANTED, None, 1)
