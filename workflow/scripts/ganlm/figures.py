"""From result files to figures: one style, every format, the same bytes every time."""

import logging
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ganlm.files import complete

# Embedding a font in a PDF is a story of twenty lines.
logging.getLogger("fontTools").setLevel(logging.WARNING)

# Okabe and Ito (2008): told apart by colour-blind readers; the order also varies in lightness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "svg.hashsalt": "ganlm",
    "pdf.fonttype": 42,
}
# Dates and version strings would make equal figures unequal files.
METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "Producer": None}, "png": {"Software": None}}


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


def convergence(curves: pd.DataFrame, threshold: float, published: float) -> Figure:
    """Figure 2: how much alpha more draws change the estimate, and how far it is from the truth.

    `published` is alpha c of the law that the paper's own curves follow.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.add_subplot(
            xlabel="draws N", ylabel="mean largest difference", xscale="log", yscale="log"
        )
        for (model, curve), colour in zip(curves.groupby("model", sort=False), cycle(COLOURS), strict=False):
            axes.plot(
                curve["draws"], curve["step"], color=colour, label=f"{model}: change over the last draws"
            )
            if curve["error"].notna().all():
                axes.plot(curve["draws"], curve["error"], color=colour, ls="--", label=f"{model}: true error")
        draws = np.array([curves["draws"].min(), curves["draws"].max()])
        axes.plot(draws, published / draws, color="0.5", lw=0.8, label="law of the published curves")
        axes.axhline(threshold, color="#B00020", lw=0.8, ls=":", label=f"threshold γ' = {threshold:g}")
        axes.legend(fontsize=8)
    return figure


def gap(points: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Approximate minus exact bits against N: the expectation as a line, draws as points."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.add_subplot(
            xlabel="draws N", ylabel="approximate - exact, bits per token", xscale="log", yscale="log"
        )
        for (model, group), colour, marker in zip(
            points.groupby("model", sort=False), cycle(COLOURS), cycle(MARKERS), strict=False
        ):
            axes.plot(group["draws"], group["expected"], color=colour, label=f"{model}: closed form")
            axes.plot(group["draws"], group["drawn"], marker, color=colour, ms=4, label=f"{model}: drawn")
        axes.plot(published["draws"], published["gap"], "x", color="black", label="the paper")
        axes.legend(fontsize=8)
    return figure


def estimators(points: pd.DataFrame, model: str) -> Figure:
    """Bias against cost: what each estimator of one model's bits gets wrong, and how many draws it takes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.add_subplot(
            xlabel="draws per token", ylabel=f"estimate - exact bits of {model}", xscale="log"
        )
        axes.set_yscale("symlog", linthresh=0.01)
        axes.axhline(0, color="0.4", lw=0.8)
        for row, colour, marker in zip(points.itertuples(), cycle(COLOURS), cycle(MARKERS), strict=False):
            axes.errorbar(
                row.draws_per_token, row.bias, yerr=1.96 * row.monte_carlo_se, fmt=marker, color=colour,
                capsize=3, label=row.estimator,
            )  # fmt: skip
        axes.legend(fontsize=8)
    return figure


def adversarial(points: pd.DataFrame) -> Figure:
    """Exact bits after some epochs of adversarial training, one curve per arm, with intervals."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="adversarial epochs", ylabel="bits per token")
        for (arm, group), colour, marker in zip(
            points.groupby("arm", sort=False), cycle(COLOURS), cycle(MARKERS), strict=False
        ):
            axes.plot(group["epoch"], group["mean"], f"{marker}-", color=colour, ms=4, label=arm)
            axes.fill_between(group["epoch"], group["low"], group["high"], color=colour, alpha=0.15, lw=0)
        axes.legend(fontsize=8)
    return figure
