"""The HTML report: one file, made and read without a network."""

import base64
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from clone import Clone, succeed

EXTERNAL = re.compile(r"(https?:)?//", re.IGNORECASE)


class Sources(HTMLParser):
    """Collects what a browser would load along with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self.found += [value for name, value in attrs if name in ("src", "href", "srcset") and value]


def without_network() -> list[str]:
    """The prefix of a command that has no network, where the system allows that."""
    for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        try:
            subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            continue
        return prefix
    return []


@pytest.fixture(scope="module")
def report(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    succeed(
        *without_network(),
        "snakemake",
        "--configfile=config/tiny.yaml",
        f"--report={path}",
        cwd=finished.path,
    )
    return path.read_text(encoding="utf-8")


def test_a_report_loads_nothing_from_elsewhere(report: str):
    page = Sources()
    page.feed(report)
    assert [source for source in page.found if EXTERNAL.match(source)] == []
    assert not re.search(r"@import|url\(\s*[\"']?https?:", report)


def test_a_report_holds_table_1_and_its_caption(report: str, finished: Clone):
    packed = re.search(r'"data:text/html;[^"]*filename=table1\.html;base64,([^"]+)"', report)
    assert packed, "table1.html is not in the report"
    html = base64.b64decode(packed[1]).decode()
    assert html == (finished.results() / "tables/table1.html").read_text()
    assert "4-gram-kn" in html
    assert '"Table 1: bits per token of every model"' in report
    assert "quoted from the literature" in report


def test_a_result_has_one_label(report: str):
    """Of two labels, Snakemake's page makes a switch; where it does not fit, the page goes blank."""
    labels = re.findall(r'"labels": (\{[^}]*\})', report)
    assert len(labels) > 5
    assert {len(json.loads(label)) for label in labels} == {1}
