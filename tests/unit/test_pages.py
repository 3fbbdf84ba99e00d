"""What the first and the last page of the report say."""

from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from jinja2 import UndefinedError

from ganlm import pages, tables

TABLE_1 = """\
Approach|Model|Paper BPC|Paper approx.|Protocol|Direct BPC|Interval|N|Approx. BPC|From samples|Source
GAN|quoted-gan|1.99|2.08|||||||quoted: Tevet et al. 2019
n-gram|2-gram|||window-7|3.500|[3.4, 3.6]|200|3.700|≥ 3.480 [3.3, 3.6]|measured
n-gram|5-gram|||window-7|2.500|[2.4, 2.6]|200|2.550|2.510 [2.4, 2.6]|measured
n-gram|other|||carried|1.000|[0.9, 1.1]|200|9.000|9.000 [8.9, 9.1]|measured
Own generator|mine||3.31|window-7|||200|4.0|≥ 3.000 [2.9, 3.1]|measured
GAN|impossible|||window-7|?|[?, ?]|200|66.000|≥ 9.000 [8.9, 9.1]|measured
GAN|late|||||||||not evaluated: late.json is missing
"""


@pytest.fixture
def table1() -> pd.DataFrame:
    return pd.read_csv(StringIO(TABLE_1), sep="|", dtype=str, keep_default_na=False)


def test_leaders_are_the_best_of_each_kind_protocol_by_protocol(table1: pd.DataFrame):
    found = {
        protocol: [(row["Approach"], row["Model"], row["bits"], row["interval"]) for row in rows]
        for protocol, rows in pages.leaders(table1, "window-7").items()
    }
    assert found == {
        "window-7": [
            ("n-gram", "5-gram", "2.500", "[2.4, 2.6]"),
            ("Own generator", "mine", "≥ 3.000", "[2.9, 3.1]"),
            ("GAN", "impossible", "?", "[?, ?]"),
        ],
        "carried": [("n-gram", "other", "1.000", "[0.9, 1.1]")],
    }
    assert list(pages.leaders(table1, "carried")) == ["carried", "window-7"]
    assert list(pages.leaders(table1, "window-1000")) == ["window-7", "carried"]


def test_gaps_are_distances_to_exact_bits_where_those_are_finite(table1: pd.DataFrame):
    found = pages.gaps(table1, "window-7")
    assert found["published"] == pytest.approx((0.05, 0.2))
    assert found["harmonic"] == pytest.approx((-0.02, 0.01))
    assert pages.gaps(table1, "window-1000") == {}


def test_the_short_table_loses_no_model_and_says_where_numbers_come_from(table1: pd.DataFrame):
    short = tables.compact(pages.ours_first(table1)).set_index("Model")
    assert list(short.index) == ["2-gram", "5-gram", "other", "mine", "impossible", "late", "quoted-gan"]
    assert list(short.loc["5-gram"]) == ["window-7", "2.500 [2.4, 2.6]", "2.550", "", "exact"]
    assert list(short.loc["mine"]) == ["window-7", "≥ 3.000 [2.9, 3.1]", "4.0", "(3.31)", "200 draws"]
    assert short.loc["quoted-gan", "Paper (approx.)"] == "1.99 (2.08)"
    assert short.loc["late", "Source"] == "not evaluated: late.json is missing"


def test_claims_are_counted_once_however_many_findings_they_have():
    verdicts = {"1. A": ["holds", "holds"], "2. B": ["holds", "cannot tell"], "3. C": ["holds"]}
    rows = [(claim, "says so.", verdict) for claim, found in verdicts.items() for verdict in found]
    judged = pages.claims(pd.DataFrame(rows, columns=["Claim", "The paper", "Verdict"]))
    assert judged[0] == {"claim": "1. A", "paper": "says so.", "verdict": "holds"}
    assert judged[1]["verdict"] == "holds (1 of 2), cannot tell (1 of 2)"
    assert pages.tally(judged) == {"holds": 2, pages.MIXED: 1}


def test_a_page_escapes_what_it_shows_and_misses_nothing(tmp_path: Path):
    (tmp_path / "base").write_text("<p>{% block body %}{% endblock %}</p>")
    (tmp_path / "page").write_text('{% extends "base" %}{% block body %}{{ name }}{% endblock %}')
    templates = [str(tmp_path / "base"), str(tmp_path / "page")]
    assert pages.render(templates, name="a<b") == "<p>a&lt;b</p>"
    with pytest.raises(UndefinedError):
        pages.render(templates)


def test_a_stage_has_another_fingerprint_when_one_of_its_modules_has():
    digests = {"a.py": "1", "b.py": "2"}
    assert pages.combined(digests) == pages.combined(dict(reversed(digests.items())))
    assert pages.combined(digests) != pages.combined(digests | {"b.py": "3"})
