import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ganlm import formats, tables
from ganlm.measurement import EXACT, SAMPLE, Row
from ganlm.summary import summarise

ROOT = Path(__file__).parents[2]
LITERATURE = pd.read_csv(ROOT / "resources/literature.csv", dtype=str, keep_default_na=False)
BPC = tables.Metric.of_unit("character")
PERPLEXITY = tables.Metric.of_unit("word")
MODELS = {
    "uniform": {"kind": "uniform", "window": None, "paper": "uniform"},
    "my_3-gram": {"kind": "ngram", "order": 3, "window": None, "paper": None},
    "carried": {"kind": "ngram", "order": 3, "window": "none", "paper": None},
}
HOSTILE = r"R&D_50% #1 $x$ {y} ~a ^b \alpha <b>"
LATEX = {
    r"\textasciitilde": "~",
    r"\textasciicircum": "^",
    r"\textbackslash": "\\",
    r"\&": "&",
    r"\%": "%",
    r"\$": "$",
    r"\#": "#",
    r"\_": "_",
    r"\{": "{",
    r"\}": "}",
}


def summary(**bits_per_token):
    """What the evaluation of a model leaves: forty blocks under each protocol."""
    noise = np.random.default_rng(1).normal(0, 0.01, 40)
    rows = [
        Row(
            protocol.replace("_", "-"),
            SAMPLE,
            EXACT,
            0,
            "bits",
            block,
            100,
            100 * (bits + error),
            0.0,
            0.0,
            0,
        )
        for protocol, bits in bits_per_token.items()
        for block, error in enumerate(noise - noise.mean())
    ]
    return {"results": summarise(pd.DataFrame(rows, columns=Row._fields), 0.95)}


SUMMARIES = {
    "uniform": summary(window_1000=np.log2(27), carried=np.log2(27)),
    "my_3-gram": summary(window_1000=2.5, carried=2.25),
    "carried": summary(window_1000=2.5, carried=2.25),
}


def table(metric=BPC, literature=LITERATURE, models=MODELS, windows=(1000, "none")):
    return tables.table1(
        summaries=SUMMARIES,
        models=models,
        windows=list(windows),
        metric=metric,
        literature=literature,
    )


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def hostile_frame():
    """A published result whose name holds everything that LaTeX and HTML treat as special."""
    return table(literature=LITERATURE.assign(model=HOSTILE))


def cells_of(frame):
    return [list(frame.columns), *frame.to_numpy().tolist()]


def markdown_cells(text):
    header, _, *body = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines()]
    return [[cell.strip().replace(r"\|", "|") for cell in row] for row in (header, *body)]


def csv_cells(text):
    return cells_of(pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False))


def latex_cells(text):
    body = re.search(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL).group(1)
    rows = re.split(r"\\\\\n", body.replace("\\midrule\n", ""))[:-1]
    return [[latex_text(cell.strip()) for cell in re.split(r"(?<!\\)&", row)] for row in rows]


def latex_text(cell):
    """What a cell shows: commands undone, and nothing special left over."""
    cell = cell.replace(r"$\leq$", "≤").replace(r"$\geq$", "≥")
    commands = "|".join(map(re.escape, LATEX))
    assert not re.search(r"[&%$#_{}~^\\]", re.sub(rf"(?:{commands})(?:\{{\}}| )?", "", cell)), cell
    return re.sub(rf"({commands})(\{{\}}|(?<=[a-z])\s)?", lambda match: LATEX[match[1]], cell)


class HtmlCells(HTMLParser):
    """Cells, and the class of each row."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.classes, self.inside, self.open = [], [], False, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
            self.classes.append(dict(attributes).get("class"))
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def html_cells(text):
    return HtmlCells(text).rows


READERS = {"csv": csv_cells, "md": markdown_cells, "tex": latex_cells, "html": html_cells}


def written(frame, folder):
    """The table in every format, by suffix."""
    paths = {suffix: folder / f"table1.{suffix}" for suffix in (*READERS, "txt")}
    formats.write(frame, [str(path) for path in paths.values()], "A caption", "tab:x")
    return {suffix: path.read_text() for suffix, path in paths.items()}


@pytest.mark.parametrize("suffix", READERS)
def test_every_format_holds_the_same_cells(suffix, frame, tmp_path):
    assert READERS[suffix](written(frame, tmp_path)[suffix]) == cells_of(frame)


@pytest.mark.parametrize("suffix", READERS)
def test_special_characters_survive_every_format(suffix, hostile_frame, tmp_path):
    """Spaces aside: LaTeX commands take some with them."""
    shown = READERS[suffix](written(hostile_frame, tmp_path)[suffix])
    assert [[cell.replace(" ", "") for cell in row] for row in shown] == [
        [cell.replace(" ", "") for cell in row] for row in cells_of(hostile_frame)
    ]


def test_the_terminal_sees_every_row(frame, tmp_path):
    lines = written(frame, tmp_path)["txt"].splitlines()
    assert [line.split("  ")[0] for line in lines[2:]] == list(frame["Approach"])


def test_markdown_escapes_its_column_mark():
    frame = table(literature=LITERATURE.assign(model="a | b"))
    assert markdown_cells(formats.to_markdown(frame)) == cells_of(frame)


def test_latex_is_a_balanced_booktabs_table(hostile_frame):
    text = formats.to_latex(hostile_frame, "A caption", "tab:x")
    opened = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    unescaped = re.sub(r"\\[{}]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    rules = [line for line in text.splitlines() if line.endswith("rule")]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    columns = re.search(r"\\begin\{tabular\}\{([lrc]+)\}", text).group(1)
    assert {len(row) for row in latex_cells(text)} == {len(columns)} == {hostile_frame.shape[1]}
    assert r"\caption{A caption}" in text
    assert r"\label{tab:x}" in text


def test_latex_captions_are_escaped():
    assert r"\caption{95\% of R\&D}" in formats.to_latex(table(), "95% of R&D", "tab:x")


def test_latex_is_ascii(frame):
    assert formats.to_latex(frame, "caption", "tab:x").isascii()


def test_html_is_one_self_contained_page(frame):
    text = formats.to_html(frame, "5 < 6 & more")
    assert text.startswith("<!doctype html>")
    assert "<caption>5 &lt; 6 &amp; more</caption>" in text
    assert not re.search(r"(src|href)=|url\(|@import", text)


def test_html_sets_quoted_rows_apart(frame):
    kinds = HtmlCells(formats.to_html(frame, "caption")).classes[1:]
    assert kinds == ["quoted"] * (len(frame) - 3) + ["measured"] * 3


def test_uniform_is_log2_27_beside_what_was_published(frame):
    row = frame.set_index("Model").loc["uniform"]
    assert row["BPC"] == "4.755"
    assert row["Paper BPC"] == "4.75"
    assert row["Source"] == "measured"


def test_a_reproduced_result_stands_beside_the_model_and_not_twice(frame):
    assert "Uniform distribution" not in set(frame["Model"])
    without = table(models={name: block | {"paper": None} for name, block in MODELS.items()})
    assert list(without["Model"]).count("Uniform distribution") == 1
    assert len(without) == len(frame) + 1
    assert without.set_index("Model").loc["uniform", "Paper BPC"] == ""


def test_quoted_rows_are_marked_and_show_no_number_of_this_run(frame):
    quoted = frame[frame["Source"].str.startswith("quoted: ")]
    expected = LITERATURE[LITERATURE["id"] != "uniform"]
    assert list(quoted["Model"]) == list(expected["model"])
    assert list(quoted["Source"]) == [f"quoted: {citation}" for citation in expected["citation"]]
    assert set(quoted["BPC"]) == set(quoted["Interval"]) == {""}
    published = quoted.set_index("Model")["Paper BPC"]
    assert published["Transformer-XL large"] == "1.08"
    assert published["MD4"] == "≤ 1.37", "a bound is no likelihood"
    assert published["Recurrent GAN - without pre-training"] == ""


def test_a_bound_stays_marked_beside_the_model_that_reproduces_it():
    frame = table(models={"uniform": MODELS["uniform"] | {"paper": "md4"}})
    assert frame.set_index("Model").loc["uniform", "Paper BPC"] == "≤ 1.37"


def test_each_model_is_shown_at_its_own_window():
    shown = table().set_index("Model")
    assert list(shown.loc["my_3-gram", ["Protocol", "BPC"]]) == ["window-1000", "2.500"]
    assert list(shown.loc["carried", ["Protocol", "BPC"]]) == ["carried", "2.250"]
    swapped = table(windows=("none", 1000)).set_index("Model")
    assert swapped.loc["my_3-gram", "Protocol"] == "carried"


def test_models_keep_the_order_of_the_config():
    backwards = dict(reversed(MODELS.items()))
    assert list(table(models=backwards)["Model"])[-3:] == list(backwards)


def test_the_interval_holds_the_number_it_belongs_to(frame):
    for _, row in frame[frame["Source"] == "measured"].iterrows():
        low, high = map(float, row["Interval"].strip("[]").split(", "))
        assert low <= float(row["BPC"]) <= high
        assert 0 < high - low < 0.02


def test_a_table_of_words_shows_perplexity_and_quotes_no_bits(tmp_path):
    frame = table(metric=PERPLEXITY)
    assert list(frame["Model"]) == list(MODELS)
    assert not any("BPC" in column for column in frame.columns)
    row = frame.set_index("Model").loc["uniform"]
    assert row["Perplexity"] == "27.0"
    low, high = map(float, row["Interval"].strip("[]").split(", "))
    assert low <= 27 <= high
    assert set(frame["Paper Perplexity"]) == {""}, "4.75 bits are no perplexity"
    for text in written(frame, tmp_path).values():
        assert "Perplexity" in text
        assert "4.75" not in text


@pytest.mark.parametrize(
    ("unit", "bits", "shown"),
    [("character", np.log2(27), "4.755"), ("word", 10, "1024.0"), ("character", 0, "0.000")],
)
def test_a_metric_shows_bits(unit, bits, shown):
    assert tables.Metric.of_unit(unit).show(bits) == shown
