"""The report in a real browser."""

from pathlib import Path

import pandas as pd
import pytest
import reader
from browser import DESKTOP, PHONE, Browser
from clone import Clone

HEADING = "return document.querySelector('.page h1').getBoundingClientRect().top"
LINK = "//div[contains(@class, 'prose')]//a[normalize-space()='6 Methods']"
PICTURE = "return document.querySelector('.page img').naturalWidth"


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    return tmp_path


def test_every_result_opens_and_the_console_stays_quiet(chromium: Browser, report: Path, screenshots: Path):
    seen = reader.click_through(chromium, report, screenshots)
    assert chromium.errors() == []
    assert list(seen) == [
        "0 Start here",
        "1 Results",
        "2 How many draws",
        "3 From draws to bits",
        "4 Adversarial training",
        "5 Training and cost",
        "6 Methods",
    ]
    assert "Table 1: bits per token of every model" in seen["1 Results"]
    assert len(list(screenshots.iterdir())) == sum(map(len, seen.values())) > 15


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_front_page_holds_the_answer(
    size: tuple[int, int], chromium: Browser, report: Path, finished: Clone, screenshots: Path
):
    """From its top, which is not cut off, and without scrolling sideways."""
    chromium.resize(*size)
    chromium.open(report)
    shown = chromium.wait(reader.FRONT)
    chromium.screenshot(screenshots / "front.png")
    table1 = pd.read_csv(finished.results() / "tables/table1.csv", dtype=str, keep_default_na=False)
    row = table1.set_index("Model").loc["4-gram-kn"]
    assert shown.startswith("How good a language model is a text generator that only emits samples?")
    assert f"n-gram: {row['Direct BPC']} {row['Interval']}, 4-gram-kn" in shown
    assert all(model in shown for model in table1["Model"])
    assert chromium.wait(PICTURE) > 100
    assert chromium.run(HEADING) >= 0
    assert chromium.run(reader.SIDEWAYS) == []
    chromium.click(LINK)
    assert chromium.wait(reader.LABELS) == ["Methods: formulas, versions, config, code, how to repeat"]
    assert chromium.errors() == []


@pytest.mark.parametrize("page", ["start", "methods"])
def test_a_page_fits_a_phone(page: str, chromium: Browser, finished: Clone, screenshots: Path):
    chromium.resize(*PHONE)
    chromium.open(finished.results() / f"{page}.html")
    chromium.screenshot(screenshots / f"{page}.png")
    assert chromium.run(reader.SIDEWAYS) == []
    assert chromium.errors() == []
