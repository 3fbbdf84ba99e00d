"""Figure 1: what a step of a generator hands to the next, and where it draws at random."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from ganlm.figures.style import COLOURS, GREY, SMALL, styled

SAMPLED, NOISY = "SeqGAN, LeakGAN", "Recurrent GAN"
WHAT_IS_FED_BACK = {SAMPLED: "the token that was drawn", NOISY: "the soft distribution itself"}
STEPS = 3
START, FIRST, NOISE, STATE, OUTPUT, DRAW, TOKEN = (
    "start", "zeros", "noise", "state", "distribution", "draw", "token"
)  # fmt: skip
RANDOM = (NOISE, DRAW)
ONE_HOT, SOFT = "one-hot token", "soft distribution"

# Where things stand, in units of the height of a cell.
PITCH, HALF, GLYPH, LABELS = 2.1, 0.42, 0.4, 0.15
HEIGHTS = {START: -1.15, FIRST: 0, NOISE: 0, STATE: 0, OUTPUT: 1.5, DRAW: 2.8, TOKEN: 4.1}
BELOW, ASIDE = -1.0, 0.98
BELIEFS = {1: (0.3, 0.9, 0.5, 0.2), 2: (0.8, 0.25, 0.35, 0.6), 3: (0.2, 0.4, 0.3, 1.0)}
DRAWN = {1: 1, 2: 3, 3: 3}
FEEDBACK, DARK, LIGHT = COLOURS[1], "0.15", "0.93"


def connections() -> pd.DataFrame:
    """Every arrow of both generators, unrolled: its ends, which name their step, and what it carries."""
    rows = []
    for generator, first in ((SAMPLED, FIRST), (NOISY, NOISE)):
        rows.append((generator, f"{START} 1", f"{STATE} 1", "start"))
        for step in range(1, STEPS + 1):
            before = f"{STATE} {step - 1}" if step > 1 else f"{first} 0"
            rows.append((generator, before, f"{STATE} {step}", "state"))
            rows.append((generator, f"{STATE} {step}", f"{OUTPUT} {step}", SOFT))
            if generator == SAMPLED:
                rows.append((generator, f"{OUTPUT} {step}", f"{DRAW} {step}", SOFT))
                rows.append((generator, f"{DRAW} {step}", f"{TOKEN} {step}", ONE_HOT))
            if step < STEPS:
                source, carried = (TOKEN, ONE_HOT) if generator == SAMPLED else (OUTPUT, SOFT)
                rows.append((generator, f"{source} {step}", f"{STATE} {step + 1}", carried))
    return pd.DataFrame(rows, columns=["generator", "source", "target", "carries"])


@styled
def recurrence(arrows: pd.DataFrame) -> Figure:
    """Both generators side by side, from their arrows."""
    figure = Figure(figsize=(7.6, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (generator, mine) in zip(panels, arrows.groupby("generator", sort=False), strict=True):
        for arrow in mine.itertuples():
            _arrow(axes, arrow.source, arrow.target)
        for node in dict.fromkeys([*mine["source"], *mine["target"]]):
            _node(axes, node)
        for kind in (OUTPUT, DRAW, TOKEN) if generator == SAMPLED else (OUTPUT,):
            axes.text(LABELS, HEIGHTS[kind], kind, ha="center", va="center", fontsize=SMALL, color=GREY)
        axes.set_title(f"{generator}:\n{WHAT_IS_FED_BACK[generator]} is fed back")
        axes.set(xlim=(-0.95, STEPS * PITCH + 0.7), ylim=(-1.4, 4.6), aspect="equal")
        axes.axis("off")
    keys = {
        "drawn at random": Line2D([], [], ls="", marker="o", ms=9, color=DARK),
        "fed back into the next step": Line2D([], [], color=FEEDBACK, lw=2.6),
        "computed": Line2D([], [], color="black", lw=1),
    }
    figure.legend(keys.values(), keys, loc="outside lower center", ncols=3)
    return figure


def _place(node: str) -> tuple[str, int, float, float]:
    """Kind and step of a node, and where its centre is."""
    kind, step = node.split()
    return kind, int(step), int(step) * PITCH, HEIGHTS[kind]


def _arrow(axes: Axes, source: str, target: str) -> None:
    """Straight between neighbours; what is fed back goes round, below the next cell and into it."""
    (kind, step, x, y), (_, following, to_x, to_y) = _place(source), _place(target)
    if following > step and kind in (OUTPUT, TOKEN):
        between, style = x + ASIDE, {"color": FEEDBACK, "lw": 2.6}
        corners = [(x + GLYPH, y), (between, y), (between, BELOW), (to_x, BELOW), (to_x, to_y - HALF)]
    elif following > step:
        corners, style = [(x + HALF, y), (to_x - HALF, to_y)], {"color": "black", "lw": 1}
    else:
        corners, style = [(x, y + HALF), (to_x, to_y - HALF)], {"color": "black", "lw": 1}
    ends = {"arrowstyle": "-|>", "mutation_scale": 10, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(path=Path(corners), joinstyle="round", **ends, **style))


def _node(axes: Axes, node: str) -> None:
    """A cell, a small picture of a distribution, or a dark circle where something is drawn."""
    kind, step, x, y = _place(node)
    if kind in RANDOM:
        axes.add_patch(Circle((x, y), HALF, color=DARK, zorder=3))
        _text(axes, x, y, "z" if kind == NOISE else "~", color="white", weight="bold", zorder=4)
    elif kind == STATE:
        corner, rounded = (x - HALF, y - HALF), "round,pad=0,rounding_size=0.12"
        box = FancyBboxPatch(corner, 2 * HALF, 2 * HALF, boxstyle=rounded, fc=LIGHT, ec="black", zorder=3)
        axes.add_patch(box)
        _text(axes, x, y, "RNN", zorder=4)
    elif kind in (START, FIRST):
        _text(axes, x, y, {START: "start", FIRST: "0"}[kind])
    else:
        _bars(axes, x, y, BELIEFS[step] if kind == OUTPUT else [i == DRAWN[step] for i in range(4)])


def _bars(axes: Axes, x: float, y: float, values: tuple | list) -> None:
    """How likely each of four tokens is; one bar alone is a token."""
    frame = Rectangle((x - GLYPH, y - GLYPH), 2 * GLYPH, 2 * GLYPH, fc="white", ec="black", lw=0.8, zorder=3)
    axes.add_patch(frame)
    width = 2 * GLYPH / len(values)
    for number, value in enumerate(values):
        left = x - GLYPH + (number + 0.18) * width
        axes.add_patch(
            Rectangle((left, y - GLYPH), 0.64 * width, 1.75 * GLYPH * value, color=COLOURS[0], zorder=4)
        )


def _text(axes: Axes, x: float, y: float, words: str, **options: object) -> None:
    axes.text(x, y, words, ha="center", va="center", fontsize=SMALL, **options)
