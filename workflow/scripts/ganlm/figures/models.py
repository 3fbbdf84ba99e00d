"""Figures about models beside each other, within one protocol."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ganlm.figures.style import COLOURS, GREY, SMALL, Look, styled

ESTIMATORS = {
    "exact": Look(COLOURS[0], "o", ""),
    "mean-softmax": Look(COLOURS[1], "s", ""),
    "harmonic": Look(COLOURS[2], "D", ""),
    "quoted": Look("black", "x", ""),
}
MEANINGS = {
    "exact": "exact",
    "mean-softmax": "mean softmax over draws of noise",
    "harmonic": "harmonic estimate from draws (≥: some tokens were never drawn)",
    "quoted": "quoted, on all of text8",
}
ROW, CELL = 0.19, 0.42
SHADES = LinearSegmentedColormap.from_list("shades", ["#DCE9F5", "#08306B"])
DARK = 0.55
READING = (
    "The darker, the larger. (0.1): the interval holds 0. 0.1?: it does not,\n"
    "but would if the chance of error were shared by all pairs."
)


@styled
def standings(points: pd.DataFrame) -> Figure:
    """Bits of every model with its interval, one panel per protocol, fewest on top."""
    sizes = points.groupby("protocol", sort=False).size()
    figure = Figure(figsize=(6.8, 1.1 + 0.45 * len(sizes) + ROW * sizes.sum()), layout="constrained")
    ratios = {"height_ratios": sizes + 1}
    panels = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, gridspec_kw=ratios)[:, 0]
    finite = points[["low", "high", "mean"]].to_numpy(float)
    right = finite[np.isfinite(finite)].max()
    for axes, (protocol, mine) in zip(panels, points.groupby("protocol", sort=False), strict=True):
        _standing(axes, mine, right)
        axes.set_title(protocol, loc="left", fontweight="bold")
    panels[-1].set_xlabel("bits per token, fewer are better")
    panels[-1].set_xlim(0, 1.14 * right)
    shown = [name for name in ESTIMATORS if name in set(points["estimator"])]
    handles = [Line2D([], [], **ESTIMATORS[name].points | {"ms": 5}) for name in shown]
    figure.legend(handles, [MEANINGS[name] for name in shown], loc="outside upper center", ncols=2)
    return figure


def _standing(axes: Axes, points: pd.DataFrame, right: float) -> None:
    """One row per model, its number beside its mark; infinite bits are an arrow at the edge."""
    for row, point in enumerate(points.itertuples()):
        look = ESTIMATORS[point.estimator].points | {"ms": 5, "mew": 1.3}
        known = np.isfinite(point.mean)
        bounded = np.isfinite([point.low, point.high]).all()
        if bounded:
            axes.plot([point.low, point.high], [row, row], color=look["color"], lw=1.6)
        axes.plot(point.mean if known else right, row, **look | ({} if known else {"marker": ">"}))
        end = point.high if bounded else point.mean if known else right
        offset = {"xytext": (6, 0), "textcoords": "offset points"}
        axes.annotate(_bits(point), (end, row), **offset, va="center", fontsize=SMALL - 1)
    axes.set_yticks(range(len(points)), points["model"], fontsize=SMALL)
    axes.set_ylim(len(points) - 0.4, -0.6)
    for tick, estimator in zip(axes.get_yticklabels(), points["estimator"], strict=True):
        tick.set_color(GREY if estimator == "quoted" else "black")


def _bits(point: NamedTuple) -> str:
    """The number as text; what is quoted has the digits that were published."""
    if not np.isfinite(point.mean):
        return "infinite"
    at_least = "≥ " if point.never_hit_share > 0 else ""
    return f"{at_least}{point.mean:.{2 if point.estimator == 'quoted' else 3}f}"


@styled
def pairs(found: pd.DataFrame, protocol: str) -> Figure:
    """Each model minus each better one: dark where it is large, white where it may be nothing."""
    better, worse = (list(dict.fromkeys(found[side])) for side in ("minus", "model"))
    worse.sort(key=[*better, *worse].index)
    place = {model: number for number, model in enumerate(worse)}
    size = CELL * len(worse)
    figure = Figure(figsize=(max(size, 2.5) + 1.8, size + 2.2), layout="constrained")
    axes = figure.add_subplot(aspect="equal")
    largest = found["mean"].where(np.isfinite(found["mean"])).abs().max()
    scale = PowerNorm(0.5, 0, largest if largest > 0 else 1, clip=True)
    for pair in found.itertuples():
        _cell(axes, better.index(pair.minus), place[pair.model], pair, scale(abs(pair.mean)))
    axes.set_xticks(range(len(better)), better, rotation=90, fontsize=SMALL)
    axes.set_yticks(range(len(worse)), worse, fontsize=SMALL)
    axes.set(xlim=(-0.5, len(better) - 0.5), ylim=(len(worse) - 0.5, -0.5))
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.suptitle(f"{protocol}: bits per token of a row minus those of a column", fontsize=SMALL + 1)
    figure.supxlabel(READING, fontsize=SMALL)
    return figure


def _cell(axes: Axes, column: int, row: int, pair: NamedTuple, depth: float) -> None:
    """A shade and a number; readable without the shade."""
    shown = pair.alone and np.isfinite(depth)
    corner = (column - 0.47, row - 0.47)
    colour = SHADES(depth) if shown else "white"
    axes.add_patch(Rectangle(corner, 0.94, 0.94, fc=colour, ec=colour if shown else "0.8", lw=0.6))
    number = "none" if np.isnan(pair.mean) else f"{pair.mean:.{2 if abs(pair.mean) >= 0.9995 else 3}f}"
    text = f"({number})" if not pair.alone else number if pair.together else f"{number}?"
    ink = "white" if shown and depth > DARK else "black"
    axes.text(column, row, text, ha="center", va="center", fontsize=SMALL - 2, color=ink)
