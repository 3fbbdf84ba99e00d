"""Figures are the same bytes anywhere, carry their fonts, and can be read without colour."""

import itertools
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from figure_examples import FIGURES
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from ganlm.figures import draws, models, profile, style, training

ROOT = Path(__file__).parents[2]
LIGHTER = 0.15


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All figures, made by two processes that share neither time zone nor hash seed nor the user's style."""
    folders = []
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        folder = tmp_path_factory.mktemp("figures")
        (folder / "matplotlibrc").write_text("lines.linewidth: 7\nfont.size: 30\n" if seed == "2" else "")
        paths = os.pathsep.join(str(ROOT / path) for path in ("workflow/scripts", "tests"))
        known = {"PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": paths, "MATPLOTLIBRC": str(folder)}
        command = [sys.executable, str(ROOT / "tests/figure_examples.py"), str(folder)]
        subprocess.run(command, check=True, env=os.environ | known, timeout=300)
        folders.append(folder)
    return folders


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
@pytest.mark.parametrize("name", FIGURES)
def test_the_same_figure_is_the_same_file(name: str, kind: str, written: list[Path]):
    one, other = ((folder / f"{name}.{kind}").read_bytes() for folder in written)
    assert one == other
    assert len(one) > 1000
    assert not re.search(rb"CreationDate|dc:date|Producer|Software|[Mm]atplotlib v", one)


def pdf_objects(data: bytes) -> bytes:
    """A PDF with its compressed streams of objects unpacked."""
    packed = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    texts = [data]
    for stream in packed:
        try:
            texts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"".join(texts)


@pytest.mark.parametrize("name", FIGURES)
def test_a_pdf_carries_its_fonts(name: str, written: list[Path]):
    text = pdf_objects((written[0] / f"{name}.pdf").read_bytes())
    described = len(re.findall(rb"/Type /FontDescriptor", text))
    assert described > 0
    assert described == len(re.findall(rb"/FontFile2 ", text)), "a font is named but not embedded"
    assert b"/Subtype /Type3" not in text


@pytest.mark.parametrize("name", FIGURES)
def test_an_svg_needs_no_font(name: str, written: list[Path]):
    text = (written[0] / f"{name}.svg").read_text(encoding="utf-8")
    assert "<text" not in text
    assert "<defs" in text


@pytest.mark.parametrize("name", FIGURES)
def test_a_png_holds_pixels_and_nothing_else(name: str, written: list[Path]):
    data, chunks, at = (written[0] / f"{name}.png").read_bytes(), set(), 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        chunks.add(kind)
        at += 12 + length
    assert chunks == {b"IHDR", b"pHYs", b"IDAT", b"IEND"}


def lightness(colour: object) -> float:
    """Relative luminance (ITU-R BT.709) of a colour, to the power of 1/2.2, as a grey printer shows it."""
    red, green, blue = (channel**2.2 for channel in to_rgb(colour))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 2.2)


def appearance(handle: object) -> tuple[tuple, float] | None:
    """What is left of a series without colour; error bars hang on the line of their means."""
    line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
    if not isinstance(line, Line2D):
        return None
    dashes = line._unscaled_dash_pattern if line.get_linestyle() != "None" else None
    filled = line.get_markerfacecolor() in ("white", "w")
    return (str(dashes), line.get_marker(), filled, line.get_linewidth()), lightness(line.get_color())


def series(figure: Figure) -> list[list]:
    """What a reader must tell apart: all that is labelled in a set of axes, and in each legend."""
    drawn = [[*axes.lines, *axes.containers] for axes in figure.axes]
    labelled = [[each for each in some if not each.get_label().startswith("_")] for some in drawn]
    inside = [child for axes in figure.axes for child in axes.get_children() if isinstance(child, Legend)]
    return [*labelled, *(legend.legend_handles for legend in [*inside, *figure.legends])]


def alike(figure: Figure) -> list[tuple]:
    """Pairs of series that look the same in grey."""
    found = []
    for handles in series(figure):
        seen = [look for look in map(appearance, handles) if look]
        for (one, light), (other, dark) in itertools.combinations(seen, 2):
            if one == other and abs(light - dark) <= LIGHTER:
                found.append((one, other))
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_series_differ_without_colour(name: str):
    assert alike(FIGURES[name]()) == []


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"generators", "pairs", "standings"}))
def test_series_of_one_look_would_be_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    """The test above fails where `looks` gives all series the same; the other figures have no such series."""
    same = style.Look(style.COLOURS[0], style.MARKERS[0], style.LINES[0])
    for module in (style, draws, models, profile, training):
        if hasattr(module, "looks"):
            monkeypatch.setattr(module, "looks", lambda names: dict.fromkeys(names, same))
    assert alike(FIGURES[name]()) != []


def test_many_series_have_looks_of_their_own():
    found = list(style.looks(map(str, range(55))).values())
    assert len({(look.marker, look.line) for look in found}) == 55
    assert len({(look.colour, look.line) for look in found[:35]}) == 35


def test_colours_are_those_of_okabe_and_ito():
    published = {
        (0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115), (0, 114, 178), (213, 94, 0), (204, 121, 167),
    }  # fmt: skip
    assert {tuple(round(255 * c) for c in to_rgb(colour)) for colour in style.COLOURS} == published


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(90, 2100, [100, 200, 500, 1000, 2000]), (1, 1e4, [1, 10, 100, 1000, 10000]), (20, 50, [20, 50])],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]):
    assert style.one_two_five(low, high) == pytest.approx(ticks)
