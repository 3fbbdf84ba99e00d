"""What all figures share: one look, every format, the same bytes every time.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart. On paper without colour
the marker and the line do: no two of the first 55 series share both.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ganlm.files import complete

# Embedding a font in a PDF is a story of twenty lines.
logging.getLogger("fontTools").setLevel(logging.WARNING)

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "h", "p")
LINES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
RED, GREY = "#B00020", "0.45"
SMALL = 8
STYLE = {
    "font.size": 9,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so the same on every machine
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 9,
    "grid.alpha": 0.3,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "legend.fontsize": SMALL,
    "legend.handlelength": 3,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "savefig.dpi": 160,
    "svg.fonttype": "path",  # glyphs are part of the file: it looks the same where the font is not installed
    "svg.hashsalt": "ganlm",
    "pdf.fonttype": 42,  # TrueType, embedded: text can be searched and journals accept it
}
# Dates and version strings would make equal figures unequal files.
METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Look:
    """How one series is drawn."""

    colour: str
    marker: str
    line: str | tuple

    @property
    def points(self) -> dict:
        """Arguments of `plot` for marks alone."""
        return {"color": self.colour, "marker": self.marker, "ls": ""}

    @property
    def curve(self) -> dict:
        """Arguments of `plot` for a line alone."""
        return {"color": self.colour, "ls": self.line}

    @property
    def both(self) -> dict:
        """Arguments of `plot` for marks on a line."""
        return self.curve | {"marker": self.marker}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, by order."""
    return dict(
        zip(dict.fromkeys(names), map(Look, cycle(COLOURS), cycle(MARKERS), cycle(LINES)), strict=False)
    )


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in this style, whatever the user's own settings are."""

    @wraps(draw)
    def drawn(*arguments: object, **options: object) -> Figure:
        with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "backend": mpl.get_backend()}):
            return draw(*arguments, **options)

    return drawn


def single(width: float = 6.4, height: float = 4.0, **axes: object) -> tuple[Figure, Axes]:
    """A figure with one set of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot(**axes)


def one_two_five(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between two values; powers of ten alone where that were too many."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 3000 else (1,)
    return [value for decade in decades for value in decade * np.array(steps) if low <= value <= high]


def plain_ticks(axes: Axes, values: Iterable[float]) -> None:
    """Ticks of a logarithmic x axis at these values only, written out."""
    values = list(values)
    axes.set_xticks(values, [f"{value:,g}" for value in values])
    axes.minorticks_off()


def signed_ticks(axes: Axes) -> None:
    """Plain numbers with a sign on a y axis of differences."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")


def with_intervals(axes: Axes, x: pd.Series, points: pd.DataFrame, **look: object) -> None:
    """Means with their intervals as bars; an interval that is not known has none."""
    below, above = points["mean"] - points["low"], points["high"] - points["mean"]
    axes.errorbar(
        x, points["mean"], yerr=[below.fillna(0), above.fillna(0)], capsize=2, elinewidth=0.8, **look
    )


def write(figure: Figure, data: pd.DataFrame, paths: Sequence[str]) -> None:
    """The figure in every format, and the numbers behind it, as the paths' suffixes say."""
    for path in map(Path, paths):
        kind = path.suffix[1:]
        with complete(path) as temporary:
            if kind == "csv":
                data.to_csv(temporary, index=False)
            else:
                with mpl.rc_context(STYLE):
                    figure.savefig(temporary, format=kind, metadata=METADATA[kind])
