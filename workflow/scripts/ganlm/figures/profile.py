"""Where the bits go: by the place of a token in its window, and by its probability."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ganlm.bins import EVERY_POSITION, NO_HIT, POSITION, RAREST
from ganlm.figures.style import GREY, Look, looks, one_two_five, plain_ticks, styled

NEVER_DRAWN = RAREST + 4
EVERY_BITS = 5


@styled
def profile(points: pd.DataFrame, protocols: Sequence[str]) -> Figure:
    """One row of panels per protocol: bits by position, bits by probability, and the gap by probability.

    The heights in a panel by probability add up to a model's bits per token, or to its gap.
    """
    style = looks(points["model"])
    height = 0.5 + (2.9 + 0.18 * len(style)) * len(protocols)
    figure = Figure(figsize=(9.6, height), layout="constrained")
    rows = figure.subplots(len(protocols), 3, squeeze=False)
    for panels, protocol in zip(rows, protocols, strict=True):
        mine = points[points["protocol"] == protocol]
        at_position = mine["view"] == POSITION
        _by_position(panels[0], mine[at_position], style)
        _by_probability(panels[1], mine[~at_position], "of_text", style, "{of_text:.3f}")
        _by_probability(panels[2], mine[~at_position], "gap", style, "{gap:+.3f}, {never_hit:.2%} never hit")
        panels[0].set(ylabel=f"bits per token, {protocol}", xlabel="position in the window")
        panels[1].set_ylabel("bits that they add per token")
        panels[2].set_ylabel("what the plug-in estimate adds")
    handles = [Line2D([], [], **look.both) for look in style.values()]
    figure.legend(handles, list(style), loc="outside upper center", ncols=max(1, min(5, len(style))))
    return figure


def _by_position(panel: Axes, points: pd.DataFrame, style: dict[str, Look]) -> None:
    """Means at the first position of each bin, with their intervals as bands."""
    for model, curve in points.groupby("model", sort=False):
        panel.plot(curve["bin"], curve["bits"], **style[model].both | {"ms": 3})
        band = {"color": style[model].colour, "alpha": 0.2, "lw": 0}
        panel.fill_between(curve["bin"], curve["low"], curve["high"], **band)
    panel.set_ylim(bottom=0)
    if points["bin"].max() > EVERY_POSITION:
        panel.set_xscale("log")
        plain_ticks(panel, one_two_five(1, points["bin"].max()))
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))


def _by_probability(
    panel: Axes, points: pd.DataFrame, column: str, style: dict[str, Look], total: str
) -> None:
    """What each bin adds, in its middle, and the sum; tokens that no draw hit are set apart at the right."""
    for model, curve in points.groupby("model", sort=False):
        hit = curve[curve["bin"] != NO_HIT]
        missed = curve[curve["bin"] == NO_HIT]
        label = total.format(**curve[["of_text", "gap", "never_hit"]].sum())
        panel.plot(hit["bin"] + 0.5, hit[column], **style[model].both | {"ms": 3}, label=label)
        panel.plot([NEVER_DRAWN] * len(missed), missed[column], **style[model].points | {"ms": 6})
    for draws in points["draws"].unique():
        panel.axvline(np.log2(draws), color=GREY, lw=0.8, ls=":")
    ticks = range(EVERY_BITS, RAREST + 1, EVERY_BITS)
    panel.set_xticks([0, *ticks, NEVER_DRAWN], ["1", *(f"$2^{{-{tick}}}$" for tick in ticks), "no hit"])
    panel.set_xlabel("probability of the true token")
    panel.legend(loc="lower left", bbox_to_anchor=(0, 1), title="sum", title_fontsize=8, alignment="left")
