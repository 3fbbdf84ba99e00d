"""Figures about networks: what training, and the length of the context, do to them."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ganlm.figures.style import GREY, looks, plain_ticks, single, styled, with_intervals


@styled
def adversarial(points: pd.DataFrame) -> Figure:
    """Bits after some epochs of adversarial training, one curve per arm, from the pre-trained model on.

    Below, the same as differences to the pre-trained model, block by block: what is hard in the text is hard
    before and after, so these intervals are the ones to look at.
    """
    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    style = looks(points["arm"])
    for number, (arm, group) in enumerate(points.groupby("arm", sort=False)):
        aside = 0.006 * (number - (len(style) - 1) / 2) * points["epoch"].max()
        for axes, kind in ((upper, "bits"), (lower, "difference")):
            mine = group[group["kind"] == kind]
            with_intervals(axes, mine["epoch"] + aside, mine, **style[arm].both, label=arm)
    start = points[(points["epoch"] == 0) & (points["kind"] == "bits")]
    upper.plot(start["epoch"], start["mean"], "k*", ms=9, zorder=5, label="pre-trained")
    lower.axhline(0, color=GREY, lw=0.8)
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    upper.set_ylabel("bits per token")
    lower.set(xlabel="adversarial epochs", ylabel="minus pre-trained, paired")
    upper.legend()
    return figure


@styled
def sweep(points: pd.DataFrame) -> Figure:
    """Bits against the length of the window, one curve per model; filled where validation chose.

    A shade leads down to the harmonic estimate where the curve is a mean softmax.
    """
    figure, axes = single(xlabel="window, tokens", ylabel="bits per token", xscale="log")
    style = looks(points["model"])
    for number, (model, curve) in enumerate(points.groupby("model", sort=False)):
        x = curve["window"] * 1.02 ** (number - (len(style) - 1) / 2)
        with_intervals(axes, x, curve, **style[model].both, mfc="white", ms=5, label=model)
        axes.fill_between(x, curve["from_below"], curve["mean"], color=style[model].colour, alpha=0.15, lw=0)
        chosen = curve["chosen"]
        axes.plot(x[chosen], curve["mean"][chosen], **style[model].points | {"ms": 6.5, "zorder": 4})
    plain_ticks(axes, sorted(points["window"].unique()))
    axes.legend(title="filled: chosen on validation", title_fontsize=8)
    return figure


@styled
def training(records: pd.DataFrame) -> Figure:
    """How training went: one panel per quantity, one curve per model."""
    quantities = list(records["quantity"].unique())
    rows, columns = -(-len(quantities) // 2), min(2, len(quantities))
    style = looks(records["model"])
    figure = Figure(figsize=(3.6 * columns, 0.8 + 2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for panel, quantity in zip(panels, quantities, strict=False):
        mine = records[records["quantity"] == quantity]
        for model, curve in mine.groupby("model", sort=False):
            panel.plot(curve["epoch"], curve["value"], **style[model].both | {"ms": 2.5, "markevery": 0.1})
        panel.set(title=quantity.replace("_", " "), xlabel="epoch")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    for unused in figure.axes[len(quantities) :]:
        unused.remove()
    lines = [Line2D([], [], **look.both) for look in style.values()]
    figure.legend(lines, list(style), loc="outside upper center", ncols=min(4, 2 * columns))
    return figure
