"""The HTML report: one file, made and read without a network."""

import base64
import json
import platform
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from clone import ROOT, Clone, succeed

from ganlm.config import checked
from ganlm.provenance import package_versions

EXTERNAL = re.compile(r"(https?:)?//", re.IGNORECASE)


class Sources(HTMLParser):
    """Collects what a browser would load along with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self.found += [value for name, value in attrs if name in ("src", "href", "srcset") and value]


@pytest.fixture(scope="module")
def text(report: Path) -> str:
    return report.read_text(encoding="utf-8")


def test_a_report_loads_nothing_from_elsewhere(text: str):
    page = Sources()
    page.feed(text)
    assert [source for source in page.found if EXTERNAL.match(source)] == []
    assert not re.search(r"@import|url\(\s*[\"']?https?:", text)


def test_a_report_holds_table_1_and_its_caption(text: str, finished: Clone):
    packed = re.search(r'"data:text/html;[^"]*filename=table1\.html;base64,([^"]+)"', text)
    assert packed, "table1.html is not in the report"
    html = base64.b64decode(packed[1]).decode()
    assert html == (finished.results() / "tables/table1.html").read_text()
    assert "4-gram-kn" in html
    assert '"Table 1: bits per token of every model"' in text
    assert "quoted from the literature" in text


def test_the_front_page_explains_every_category_and_no_other():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    front = (ROOT / "workflow/report/workflow.rst").read_text()
    explained = re.findall(r'^    "(\d [^"]+)": "[^"]+",$', front, re.MULTILINE)
    assert explained == sorted(set(re.findall(r'category="([^"]+)"', rules)))


def test_the_methods_hold_the_config_that_repeats_the_run(finished: Clone):
    """Saved to a file, it passes the same check and asks for nothing new."""
    page = (finished.results() / "methods.html").read_text(encoding="utf-8")
    config = yaml.safe_load(unescape(re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)[-1]))
    given = yaml.safe_load((finished.path / "config/tiny.yaml").read_text())
    schema = finished.path / "workflow/schemas/config.schema.yaml"
    assert config == checked(config, schema) == checked(given, schema)


def test_the_methods_name_versions_and_code(finished: Clone):
    page = (finished.results() / "methods.html").read_text(encoding="utf-8")
    for package, version in package_versions("torch", "numpy", "snakemake").items():
        assert f"<tr><td>{package}</td><td>{version}</td></tr>" in page
    assert f"<tr><td>python</td><td>{platform.python_version()}</td></tr>" in page
    digests = dict(re.findall(r"<tr><td><code>([^<]+)</code></td><td><code>([0-9a-f]{16})</code>", page))
    scripts = {path.name for path in (finished.path / "workflow/scripts").glob("*.py")}
    assert scripts | {"ganlm/models/ngram.py", "ganlm/measure_sampled.py"} <= set(digests)
    assert len(set(digests.values())) == len(digests)


def test_pages_are_the_same_bytes_when_made_again(finished_clone: Clone):
    pages = [finished_clone.results() / f"{name}.html" for name in ("start", "methods")]
    before = [page.read_bytes() for page in pages]
    finished_clone.run("--forcerun", "render_start", "render_methods", "--rerun-triggers", "input")
    assert [page.read_bytes() for page in pages] == before


def test_make_ends_with_table_1_and_the_paths_that_matter(finished_clone: Clone):
    """In a clone without an environment of its own, which make would set up first."""
    settings = ("CONFIG=config/tiny.yaml", "NAME=tiny")
    command = ("make", "--no-print-directory", "--old-file=.venv/.ready", "run", *settings)
    output = succeed(*command, cwd=finished_clone.path)
    table = (finished_clone.results() / "tables/table1.txt").read_text().splitlines()
    paths = {"report": "report.html", "tables": "tables/", "findings": "findings.md"}
    assert output.splitlines()[-len(table) - 4 :] == [
        *table,
        "",
        *(f"{name:<10}results/tiny/{path}" for name, path in paths.items()),
    ]
    assert all((finished_clone.results() / path).exists() for path in paths.values())
    assert max(map(len, table)) <= 132


def test_a_result_has_one_label(text: str):
    """Of two labels, Snakemake's page makes a switch; where it does not fit, the page goes blank."""
    labels = re.findall(r'"labels": (\{[^}]*\})', text)
    assert len(labels) > 5
    assert {len(json.loads(label)) for label in labels} == {1}
