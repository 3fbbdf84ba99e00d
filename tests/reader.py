"""Reads a report as a reviewer does: opens it, then clicks through every category and every result."""

from pathlib import Path

from browser import DESKTOP, Browser

MENU = "//nav//li/a[normalize-space()='{}']"
BUTTON = "(//nav//tbody/tr)[{}]/td[last()]//a[{}]"
CRUMB = "//nav//a[normalize-space()='{}']"
CATEGORIES = "return Object.keys(categories).sort((a, b) => a.localeCompare(b))"
LABELS = "return [...document.querySelectorAll('nav tbody tr')].map(row => row.cells[0].textContent)"
FRAME = "return document.querySelector('#app iframe') !== null"
IMAGE = """
const image = document.querySelector('#app > div > div img')
return image && image.complete && [image.naturalWidth, image.getBoundingClientRect().top]
"""
TEXT = "return document.readyState === 'complete' && document.body.innerText.trim()"
CAPTION = "return document.querySelector('nav .prose')?.textContent.trim()"
FRONT = "return document.querySelector('.page')?.innerText"
SIDEWAYS = """
const boxes = [document.documentElement, ...document.querySelectorAll('#app > div, #app > div > div, .page')]
return boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => `${box.tagName} ${box.className}`)
"""


def click_through(browser: Browser, report: Path, screenshots: Path) -> dict[str, list[str]]:
    """Category -> what it lists, in the order of the page, after every result and its caption were seen."""
    browser.resize(*DESKTOP)
    browser.open(report)
    browser.wait("return document.querySelector('nav li') !== null")
    seen = {}
    for category in browser.run(CATEGORIES):
        browser.click(MENU.format(category))
        seen[category] = browser.wait(LABELS)
        for number in range(1, len(seen[category]) + 1):
            browser.click(BUTTON.format(number, 1))
            see_result(browser)
            browser.screenshot(screenshots / f"{category} {number}.png")
            browser.click(BUTTON.format(number, 2))
            assert len(browser.wait(CAPTION)) > 40
            browser.click(CRUMB.format(category))
        browser.click(CRUMB.format("Results"))
    return seen


def see_result(browser: Browser) -> None:
    """A figure that has a size and is not cut off at its top, or a page that has words."""
    if not browser.run(FRAME):
        width, top = browser.wait(IMAGE)
        assert width > 100
        assert top >= 0
        return
    browser.inside(0)
    assert len(browser.wait(TEXT)) > 40
    browser.inside(None)
