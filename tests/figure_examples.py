"""One figure of each kind, from made-up numbers with as many series as a large run has."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ganlm.figures import draws, models, profile, recurrence, style, training

MODELS = ["uniform", "3-gram", "8-gram-kn", "lstm", "seqgan", "recurrent-gan", "own", "another"]


def grid(**columns: list) -> pd.DataFrame:
    """All combinations, with a mean and an interval."""
    points = pd.MultiIndex.from_product(columns.values(), names=columns).to_frame(index=False)
    mean = 2 + np.sin(np.arange(len(points)))
    return points.assign(mean=mean, low=mean - 0.1, high=mean + 0.2)


def convergence() -> Figure:
    curves = grid(model=MODELS, draws=list(range(10, 2000, 10)))
    scale = 1 + curves["model"].map(MODELS.index) / 10
    curves = curves.assign(step=1.6 * scale / curves["draws"], error=0.4 * scale / curves["draws"] ** 0.5)
    curves.loc[curves["model"] == "own", "error"] = np.nan
    chosen = dict.fromkeys(MODELS, 1600) | {"another": None}
    return draws.convergence(curves, chosen, 0.001, 1.585, (1580, 1630))


def gap() -> Figure:
    points = grid(model=MODELS, draws=[100, 200, 500, 1000, 2000])
    published = pd.DataFrame(
        [("the paper", 2000, 1.85, 1.95, 0.1), ("its first version", 2000, 2.06, 2.25, 0.19)],
        columns=["version", "draws", "bpc", "approx_bpc", "gap"],
    )
    return draws.gap(points.assign(expected=points["mean"], drawn=points["low"]), published)


def estimators() -> Figure:
    points = pd.DataFrame(
        {"estimator": MODELS, "bias": np.linspace(-0.1, 1, 8), "monte_carlo_se": 0.01, "error": 0.1}
        | {"draws_per_token": np.geomspace(10, 2000, 8)}
    )
    return draws.estimators(points, "3-gram")


def adversarial() -> Figure:
    return training.adversarial(grid(arm=MODELS, kind=["bits", "difference"], epoch=[0, 5, 10]))


def sweep() -> Figure:
    points = grid(model=MODELS, window=[1, 7, 20])
    below = (points["mean"] - 0.1).where(points["model"] == MODELS[0])
    return training.sweep(points.assign(chosen=points["window"] == 7, from_below=below))


def training_curves() -> Figure:
    points = grid(model=MODELS, quantity=["loss", "accuracy_real", "reward"], epoch=[0, 1, 2])
    return training.training(points.assign(value=points["mean"]))


def generators() -> Figure:
    return recurrence.recurrence(recurrence.connections())


def bound() -> Figure:
    curves = grid(alphabet=[1, 27, 50_000], gamma=[1e-4, 1e-3, 1e-2, 1e-1])
    draws_needed = np.log(200 * curves["alphabet"]) / 2 / curves["gamma"] ** 2
    published = pd.DataFrame({"alphabet": [27, 50_000], "gamma": 1e-3, "draws": [4.3e6, 8.1e6]})
    used = pd.DataFrame({"used_by": "the paper", "draws": 2000, "gamma": [0.04, 0.05, 0.06]})
    other = used.assign(used_by="this run", draws=200, gamma=used["gamma"] * 10**0.5)
    return draws.bound(curves.assign(epsilon=0.01, draws=draws_needed), published, pd.concat([used, other]))


def standings() -> Figure:
    points = grid(protocol=["window-1000", "window-7"], model=MODELS)
    estimators = ["exact", "mean-softmax", "harmonic", "quoted"] * 4
    points = points.assign(estimator=estimators, never_hit_share=[0, 0, 0.01, np.nan] * 4)
    points.loc[points["estimator"] == "quoted", ["low", "high"]] = np.nan
    points.loc[0, ["mean", "low", "high"]] = np.inf
    return models.standings(points)


def pairs() -> Figure:
    """As many models as the demo has."""
    names = [f"model-{number}" for number in range(17)]
    found = [(worse, better) for number, better in enumerate(names) for worse in names[number + 1 :]]
    table = pd.DataFrame(found, columns=["model", "minus"])
    mean = np.geomspace(0.001, 3, len(table))
    table = table.assign(mean=mean, alone=mean > 0.01, together=mean > 0.05)
    table.loc[5, ["mean", "alone"]] = [np.nan, False]
    table.loc[6, ["mean", "alone", "together"]] = [np.inf, True, True]
    return models.pairs(table, "window-1000")


def where_the_bits_go() -> Figure:
    protocols = ["window-100", "window-7"]
    position = grid(model=MODELS, protocol=protocols, view=["position"], bin=[1, 2, 3, 50])
    probability = grid(model=MODELS[:4], protocol=protocols, view=["probability"], bin=[0, 1, 9, 20])
    hits = grid(model=MODELS[4:], protocol=protocols, view=["hits"], bin=[-1, 0, 3])
    points = pd.concat([position, probability, hits], ignore_index=True)
    columns = {"bits": points["mean"], "of_text": points["mean"] / 10, "gap": points["mean"] / 99}
    return profile.profile(points.assign(**columns, never_hit=0.001, draws=2000), protocols)


FIGURES = {
    made.__name__: made
    for made in (
        convergence,
        gap,
        estimators,
        adversarial,
        sweep,
        training_curves,
        generators,
        bound,
        standings,
        pairs,
        where_the_bits_go,
    )
}


def write_all(folder: Path) -> None:
    """Every figure in every format."""
    for name, make in FIGURES.items():
        paths = [str(folder / f"{name}.{kind}") for kind in ("svg", "pdf", "png")]
        style.write(make(), pd.DataFrame(), paths)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
