"""Figures about draws: how many are enough, and what bits they give."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ganlm.figures.style import (
    GREY,
    RED,
    SMALL,
    looks,
    one_two_five,
    plain_ticks,
    signed_ticks,
    single,
    styled,
)

NEVER_DRAWN_BITS = -np.log2(1e-20)


@styled
def convergence(
    curves: pd.DataFrame,
    chosen: Mapping[str, int | None],
    threshold: float,
    law: float,
    published: Sequence[int],
) -> Figure:
    """Figure 2: how much alpha more draws change the estimate, and how far it is from the truth.

    `chosen` is the N of each model from which on the change stays below the threshold. `law` over N is the
    curve that the paper published for SeqGAN, with its alpha of 10; `published` is where its models' curves
    stay below its threshold.
    """
    figure, axes = single(
        height=4.6, xlabel="draws N", ylabel="mean largest difference", xscale="log", yscale="log"
    )
    style = looks(curves["model"])
    for model, curve in curves.groupby("model", sort=False):
        mark = style[model].points | {"ms": 3.5, "markevery": 0.1}
        axes.plot(curve["draws"], curve["step"], **mark | {"ls": "-"})
        if curve["error"].notna().all():
            axes.plot(curve["draws"], curve["error"], **mark | {"ls": "--", "mfc": "white"})
        if chosen[model] is not None:
            axes.plot(
                chosen[model], threshold, **style[model].points | {"ms": 8, "mec": "black", "zorder": 5}
            )
    draws = np.array([curves["draws"].min(), curves["draws"].max()])
    axes.plot(draws, law / draws, color=GREY, lw=0.7)
    axes.axhline(threshold, color=RED, lw=0.9, ls=":")
    axes.plot(published, [threshold] * len(published), "k+", ms=9, mew=1.2, zorder=6)
    names = [f"{model}: N = {chosen[model]:,}" if chosen[model] else f"{model}: none" for model in style]
    marks = [Line2D([], [], **look.points | {"ms": 6}) for look in style.values()]
    key = axes.legend(marks, names, title="Stays below γ' from", loc="lower left", title_fontsize=8)
    axes.add_artist(key)
    axes.legend(
        [
            Line2D([], [], color="black"),
            Line2D([], [], color="black", ls="--"),
            Line2D([], [], color=GREY, lw=0.7),
            Line2D([], [], color=RED, lw=0.9, ls=":"),
            Line2D([], [], color="black", marker="+", ls="", ms=9),
        ],
        [
            "change over the last draws: the paper's rule",
            "true error",
            f"the paper's SeqGAN, {law:g}/N",
            f"threshold γ' = {threshold:g}",
            "the paper's models: " + ", ".join(f"{n:,}" for n in published),
        ],
        loc="upper right",
    )
    return figure


@styled
def bound(curves: pd.DataFrame, published: pd.DataFrame, used: pd.DataFrame) -> Figure:
    """N that Hoeffding's bound asks for against the accuracy, one line per alphabet.

    `published` are the paper's examples, `used` the accuracy that numbers of draws guarantee for an alphabet.
    """
    epsilon = curves["epsilon"].iloc[0]
    figure, axes = single(xlabel="accuracy γ, at every token", ylabel="draws N", xscale="log", yscale="log")
    style = looks(map(str, curves["alphabet"]))
    for alphabet, curve in curves.groupby("alphabet", sort=False):
        axes.plot(curve["gamma"], curve["draws"], **style[str(alphabet)].curve, label=_alphabet(alphabet))
    axes.plot(
        published["gamma"], published["draws"], "kx", ms=8, mew=1.6, zorder=5, label="the paper's examples"
    )
    for row, aside, side in zip(published.itertuples(), (-9, 9), ("right", "left"), strict=True):
        label = f"|V| = {row.alphabet:,}: {row.draws / 1e6:.1f} million"
        offset = {"xytext": (aside, aside / 2), "textcoords": "offset points", "fontsize": SMALL}
        axes.annotate(label, (row.gamma, row.draws), ha=side, va="center", **offset)
    for (who, number), crossings in used.groupby(["used_by", "draws"], sort=False):
        axes.axhline(number, color=GREY, lw=0.8, zorder=1)
        axes.plot(crossings["gamma"], crossings["draws"], ".", color=GREY, ms=6)
        reached = " to ".join(
            f"{gamma:.3f}" for gamma in (crossings["gamma"].min(), crossings["gamma"].max())
        )
        axes.annotate(f"N = {number:,}, {who}: γ = {reached}", (curves["gamma"].min(), number), (0, 3),
                      textcoords="offset points", fontsize=SMALL, color=GREY)  # fmt: skip
    axes.legend(title=f"fails with probability ε = {epsilon:g} at most", title_fontsize=SMALL)
    return figure


def _alphabet(size: int) -> str:
    return f"|V| = {size:,}" + (", the true token alone" if size == 1 else "")


@styled
def gap(points: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Approximate minus exact bits against N: the expectation as a line, draws as points."""
    figure, axes = single(
        height=4.4, xlabel="draws N", ylabel="approximate − exact, bits per token", xscale="log", yscale="log"
    )
    style = looks(points["model"])
    for model, group in points.groupby("model", sort=False):
        axes.plot(group["draws"], group["expected"], **style[model].curve)
        axes.plot(group["draws"], group["drawn"], **style[model].points)
    quoted = []
    for (version, group), mark in zip(published.groupby("version", sort=False), "x+", strict=True):
        axes.plot(group["draws"], group["gap"], mark, color="black", ms=8, mew=1.4, zorder=5)
        steps = ", ".join(
            f"{exact} → {about}" for exact, about in zip(group["bpc"], group["approx_bpc"], strict=True)
        )
        quoted.append((Line2D([], [], color="black", marker=mark, ls="", ms=8), f"{version}: {steps}"))
    models = [
        (Line2D([], [], **look.both), f"{model}: closed form, and drawn") for model, look in style.items()
    ]
    axes.legend(*zip(*models, *quoted, strict=True))
    plain_ticks(axes, one_two_five(points["draws"].min(), points["draws"].max()))
    _never_drawn_axis(axes)
    return figure


def _never_drawn_axis(axes: Axes) -> None:
    """The same gap as the share of tokens that cost 66.4 bits because they were never drawn."""
    percent = NEVER_DRAWN_BITS / 100
    other = axes.secondary_yaxis(
        "right", functions=(lambda bits: bits / percent, lambda share: share * percent)
    )
    other.set_ylabel(f"as many tokens at {NEVER_DRAWN_BITS:.1f} bits, never drawn, %")


@styled
def estimators(points: pd.DataFrame, model: str) -> Figure:
    """Bias against cost of each estimator of one model's bits: what it gets wrong, and the draws it takes.

    Marks are biases in closed form; bars are where 95% of runs fall on the same text, crosses where this did.
    """
    figure, axes = single(xlabel="draws per token", ylabel=f"estimate − exact bits of {model}", xscale="log")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.axhline(0, color=GREY, lw=0.8)
    style = looks(points["estimator"])
    for row in points.itertuples():
        axes.errorbar(
            row.draws_per_token, row.bias, yerr=1.96 * row.monte_carlo_se, capsize=3,
            **style[row.estimator].points | {"ms": 6},
            label=f"{row.estimator}: bias {row.bias:+.3f}, {row.draws_per_token:,.0f} draws",
        )  # fmt: skip
        axes.plot(row.draws_per_token, row.error, "x", color="black", ms=4, mew=0.9, zorder=5)
    signed_ticks(axes)
    low, high = points["draws_per_token"].min() / 1.5, points["draws_per_token"].max() * 1.5
    axes.set_xlim(low, high)
    plain_ticks(axes, one_two_five(low, high))
    figure.legend(loc="outside upper center", ncols=2)
    return figure
