import io
import re
from html.parser import HTMLParser
from pathlib import Path

import latex
import numpy as np
import pandas as pd
import pytest

from ganlm import formats, tables, terminal
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


READERS = {"csv": csv_cells, "md": markdown_cells, "tex": latex.cells, "html": html_cells}


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


def hits_and_bits(**estimates):
    """A generator with these estimates at N = 2,000, of which a few tokens were never drawn."""
    rows = [
        Row("window-1000", SAMPLE, name, 2000, "bits", b, 100, 100 * bits + b % 2, 1.0, 2000.0, 1)
        for name, bits in estimates.items()
        for b in range(20)
    ]
    return {"results": summarise(pd.DataFrame(rows, columns=Row._fields), 0.95)}


@pytest.fixture
def shown():
    """Table 1 of models that have and have not known probabilities, and of one that is missing."""
    summaries = SUMMARIES | {"mine": hits_and_bits(harmonic=12.345, **{"plug-in": 23.456})}
    models = MODELS | {"mine": {"kind": "command", "window": None, "paper": "seqgan-full"}}
    frame = tables.table1(summaries, models, [1000, "none"], BPC, LITERATURE)
    return tables.with_missing(frame, {"gone": "not evaluated: results/x.json is missing"}, "Source")


def test_a_terminal_of_120_columns_is_wide_enough(shown):
    text = terminal.table1(shown, BPC)
    assert max(map(len, text.splitlines())) <= 120
    for name in [*shown["Model"], *shown["Approach"]]:
        assert re.search(rf"^{re.escape(name.split(' ')[0])}", text, re.MULTILINE), name


def terminal_rows(frame, metric=BPC):
    """First lines of the rows of the terminal's table, by model."""
    header, _, *lines = terminal.table1(frame, metric).split("\n\n")[0].splitlines()
    starts = [match.start() for match in re.finditer(r"(?<![^ ] )(?<=  )\S|^\S", header)]
    cells = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    names = [header[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return {row[0]: dict(zip(names, row, strict=True)) for row in cells}


def test_a_terminal_shows_ours_beside_theirs(shown):
    rows = terminal_rows(shown)
    assert rows["mine"] == {
        "Model": "mine",
        "Protocol": "window-1000",
        "Direct BPC": "",
        "Approx. BPC": "23.461",
        "From samples": "≥ 12.350",
        "Paper": "1.99 / 2.08",
        "Version 1": "2.06 / 2.25",
    }
    assert rows["SeqGAN - pre-trained LM"]["Paper"] == "1.85 / 1.95"
    assert rows["SeqGAN - pre-trained LM"]["Protocol"] == "quoted"
    assert rows["Recurrent GAN - without"]["Paper"] == "- / 3.31"
    assert rows["my_3-gram"]["Direct BPC"] == "2.500"


def test_a_terminal_says_what_is_missing_and_what_the_numbers_hide(shown):
    text = terminal.table1(shown, BPC)
    assert "gone: not evaluated: results/x.json is missing" in text
    assert "LeakGAN: not yet run; the paper says that it performed worse and gives no number" in text
    assert "mine: the prose of the second version says 2.06 where its table has 2.08" in text
    assert "N = 2,000 draws per token" in text


def test_a_terminal_of_perplexities_quotes_nothing():
    text = terminal.table1(table(metric=PERPLEXITY), PERPLEXITY)
    assert "Paper" not in text
    assert "Direct Perplexity" in text


def test_ours_stand_beside_theirs_in_the_order_of_the_paper(shown):
    """Of every approach the quoted results, then ours, the uniform distribution last."""
    approaches = list(dict.fromkeys(shown["Approach"]))
    assert approaches == [
        *("Language model", "Diffusion", "n-gram", "GAN", "Own generator", "Baseline"),
        "",
    ]
    gans = shown[shown["Approach"] == "GAN"]
    assert list(gans["Source"].str.partition(":")[0]) == ["quoted", "quoted", "not yet run"]


def test_a_model_without_a_published_number_waits_to_be_run(frame):
    row = frame.set_index("Model").loc["LeakGAN"]
    assert row["Source"] == "not yet run"
    assert "gives no number" in row["Note"]
    assert set(row[[name for name in frame if "BPC" in name or name == "First version"]]) == {""}


def test_markdown_escapes_its_column_mark():
    frame = table(literature=LITERATURE.assign(model="a | b"))
    assert markdown_cells(formats.to_markdown(frame)) == cells_of(frame)


def test_latex_names_caption_and_label(hostile_frame):
    text = formats.to_latex(hostile_frame, "A caption", "tab:x")
    assert r"\caption{A caption}" in text
    assert r"\label{tab:x}" in text
    assert text.startswith("% \\usepackage{booktabs,graphicx}\n")


BROKEN = {
    "an unescaped underscore": (r"\_", "_"),
    "an unescaped ampersand": (r"\&", "&"),
    "a command of the user": (r"\textbackslash{}", "\\"),
    "an open brace": (r"\}", "}"),
    "an environment that does not end": (r"\end{table}", ""),
    "no rule below the header": (r"\midrule", r"\bottomrule"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_what_latex_would_refuse_is_noticed(hostile_frame, change):
    text = formats.to_latex(hostile_frame, "A caption", "tab:x")
    assert latex.cells(text)
    assert change[0] in text
    with pytest.raises((AssertionError, AttributeError, IndexError)):
        latex.cells(text.replace(*change, 1))


def test_latex_captions_are_escaped():
    assert r"\caption{95\% of R\&D}" in formats.to_latex(table(), "95% of R&D", "tab:x")


def test_latex_is_ascii(frame):
    assert formats.to_latex(frame, "caption", "tab:x").isascii()


def test_characters_that_latex_lacks_are_named_by_their_number():
    text = formats.to_latex(pd.DataFrame({"x": ["café ↵ 漢"]}), "caption", "tab:x")
    assert r"café \texttt{U+21B5} \texttt{U+6F22}" in text
    assert latex.cells(text)


def test_a_table_longer_than_a_page_is_cut_into_pages():
    frame = pd.DataFrame({"row": map(str, range(2 * formats.PAGE_ROWS + 1)), "long": "b " * 60})
    text = formats.to_latex(frame, "A caption", "tab:x")
    assert latex.cells(text) == [["row", "long"], *([row, ("b " * 60).strip()] for row in frame["row"])]
    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:x", "tab:x-2", "tab:x-3"]
    assert text.count(r"\begin{tabular}{lp{0.4\linewidth}}") == 3
    assert r"\caption{Table~\ref{tab:x}, page 3 of 3.}" in text


@pytest.mark.skipif(not latex.engine(), reason="no LaTeX is installed")
def test_wide_and_long_tables_stay_within_their_pages(frame, tmp_path):
    long = pd.DataFrame({"a narrow table": map(str, range(100))})
    latex.compile_all([formats.to_latex(each, "caption", "tab:x") for each in (frame, long)], tmp_path)


def test_long_cells_are_broken():
    text = formats.to_latex(pd.DataFrame({"short": ["a"], "long": ["b " * 60]}), "caption", "tab:x")
    assert r"\begin{tabular}{lp{0.4\linewidth}}" in text


def test_html_is_one_self_contained_page(frame):
    text = formats.to_html(frame, "5 < 6 & more")
    assert text.startswith("<!doctype html>")
    assert "<caption>5 &lt; 6 &amp; more</caption>" in text
    assert not re.search(r"(src|href)=|url\(|@import", text)


def test_html_sets_quoted_rows_apart(frame):
    kinds = HtmlCells(formats.to_html(frame, "caption")).classes[1:]
    assert kinds == [source.split(":")[0] for source in frame["Source"]]
    assert kinds.count("measured") == 3


def test_uniform_is_log2_27_beside_what_was_published(frame):
    row = frame.set_index("Model").loc["uniform"]
    assert row["Direct BPC"] == "4.755"
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
    expected = LITERATURE[~LITERATURE["id"].isin(["uniform", "leakgan"])]
    assert list(quoted["Model"]) == list(expected["model"])
    assert list(quoted["Source"]) == [f"quoted: {citation}" for citation in expected["citation"]]
    assert set(quoted["Direct BPC"]) == set(quoted["Interval"]) == {""}
    published = quoted.set_index("Model")["Paper BPC"]
    assert published["Transformer-XL large"] == "1.08"
    assert published["MD4"] == "≤ 1.37", "a bound is no likelihood"
    assert published["Recurrent GAN - without pre-training"] == ""


@pytest.mark.skipif(not latex.engine(), reason="no LaTeX is installed; the tables are parsed")
def test_latex_compiles(hostile_frame, tmp_path):
    symbols = pd.DataFrame({"≤ α ± γ": ["≥ 1", "2 ± 3", "café ↵ 漢"]})
    tables = [formats.to_latex(table, "50% of R&D_1", "tab:x") for table in (hostile_frame, symbols)]
    latex.compile_all(tables, tmp_path)


def test_both_versions_of_the_paper_are_quoted(frame):
    """Table 1 of arXiv:1810.12686, version 2 in columns of its own, version 1 in one."""
    quoted = frame.set_index("Model")[["Paper BPC", "Paper approx.", "First version"]]
    assert quoted.loc["SeqGAN - pre-trained LM"].tolist() == ["1.85", "1.95", "1.93 / 2.05"]
    assert quoted.loc["SeqGAN - full adversarial training"].tolist() == ["1.99", "2.08", "2.06 / 2.25"]
    assert quoted.loc["Recurrent GAN - without pre-training"].tolist() == ["", "3.31", "- / 3.31"]
    assert quoted.loc["uniform"].tolist() == ["4.75", "", "4.75 / -"]
    assert quoted.loc["Large RHN"].tolist() == ["1.27", "", ""]
    assert "First version" not in table(metric=PERPLEXITY)


def test_a_bound_stays_marked_beside_the_model_that_reproduces_it():
    frame = table(models={"uniform": MODELS["uniform"] | {"paper": "md4"}})
    assert frame.set_index("Model").loc["uniform", "Paper BPC"] == "≤ 1.37"


def test_each_model_is_shown_at_its_own_window():
    shown = table().set_index("Model")
    assert list(shown.loc["my_3-gram", ["Protocol", "Direct BPC"]]) == ["window-1000", "2.500"]
    assert list(shown.loc["carried", ["Protocol", "Direct BPC"]]) == ["carried", "2.250"]
    swapped = table(windows=("none", 1000)).set_index("Model")
    assert swapped.loc["my_3-gram", "Protocol"] == "carried"


def test_the_paper_s_estimate_of_a_generator_with_noise_is_its_mean_softmax():
    """That is what the published code computed; of any other generator it counted hits."""
    estimates = {"plug-in": 5.0, "mean-softmax": 4.0, "harmonic": 4.5}
    rows = [
        Row("window-7", SAMPLE, name, 2000, "bits", block, 100, 100 * bits + block % 2, 1.0, 2000.0, 0)
        for name, bits in estimates.items()
        for block in range(20)
    ]
    noisy, counted = (
        pd.DataFrame([row for row in rows if row.estimator != left_out], columns=Row._fields)
        for left_out in ("nothing", "mean-softmax")
    )
    summaries = {name: {"results": summarise(rows, 0.95)} for name, rows in (("a", noisy), ("b", counted))}
    models = {name: {"kind": "recurrent_gan", "window": 7, "paper": None} for name in summaries}
    found = tables.table1(summaries, models, [7], BPC, LITERATURE).set_index("Model")
    assert found.loc[["a", "b"], "Approx. BPC"].tolist() == ["4.005", "5.005"]
    assert found.loc[["a", "b"], "From samples"].str.startswith("4.505").all()


def test_models_keep_the_order_of_the_config():
    ngrams = {name: block for name, block in MODELS.items() if block["kind"] == "ngram"}
    backwards = dict(reversed(ngrams.items()))
    for models in (ngrams, backwards):
        shown = table(models=models)
        assert list(shown[shown["Source"] == "measured"]["Model"]) == list(models)


def test_the_interval_holds_the_number_it_belongs_to(frame):
    for _, row in frame[frame["Source"] == "measured"].iterrows():
        low, high = map(float, row["Interval"].strip("[]").split(", "))
        assert low <= float(row["Direct BPC"]) <= high
        assert 0 < high - low < 0.02


def test_a_table_of_words_shows_perplexity_and_quotes_no_bits(tmp_path):
    frame = table(metric=PERPLEXITY)
    assert sorted(frame["Model"]) == sorted(MODELS)
    assert not any("BPC" in column for column in frame.columns)
    row = frame.set_index("Model").loc["uniform"]
    assert row["Direct Perplexity"] == "27.0"
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
