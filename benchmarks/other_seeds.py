"""Is the stated error of shared draws the real one? A trained Recurrent GAN, measured again with other seeds.

    python benchmarks/other_seeds.py results/text8-cpu --model recurrent-gan
    python benchmarks/other_seeds.py results/text8-cpu --precision bfloat16    # what rounding does

All windows share their draws, so another seed moves all of them at once. The text stays the same here; what
differs between seeds is the draws alone: their spread is to be compared with the stated Monte-Carlo error.
That is a jackknife over groups of draws, which on average errs towards caution (Efron and Stein 1981), but
must not state twice the real error.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import chi2
from workbench import EVALUATION, Line, print_table

from ganlm.corpus import Corpus, load_tokens
from ganlm.files import read_json
from ganlm.generator import Surroundings
from ganlm.measure_latent import measure
from ganlm.measurement import Row, Text, tasks
from ganlm.models.recurrent_gan import RecurrentGan, load
from ganlm.resume import Journal
from ganlm.summary import summarise

ESTIMATORS = ("mean-softmax", "plug-in", "harmonic", "ibs")
LEVEL = 0.95
CAUTIOUS = 0.5


def arguments() -> argparse.Namespace:
    """What to measure, and how often."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a finished run")
    parser.add_argument("--model", default="recurrent-gan")
    parser.add_argument("--window", type=int, default=7)
    parser.add_argument("--characters", type=int, default=2000, help="of the test part (%(default)s)")
    parser.add_argument("--draws", type=int, default=200, help="N (%(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="how often (%(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    return parser.parse_args()


def one_seed(model: RecurrentGan, text: Text, window: int, draws: int, seed: int) -> list[dict]:
    """Every estimate with its errors."""
    settings = replace(EVALUATION, draws=draws, cap=draws, estimators=ESTIMATORS, seed=seed)
    (task,) = tasks("latent", "latent", text, [window], settings, (1, 1))
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(model, task, Journal(Path(folder) / "rows", seed), 1)
    return summarise(pd.DataFrame(rows, columns=Row._fields).query("view == 'whole'"), LEVEL)


def lines(results: pd.DataFrame, seeds: int) -> Iterator[Line]:
    """Spread over seeds, over the root of the mean stated variance, with the interval of that spread.

    (k - 1) s² / σ² is χ² with k - 1 degrees of freedom for k seeds of normal error.
    """
    bounds = np.sqrt((seeds - 1) / chi2.ppf([0.5 + LEVEL / 2, 0.5 - LEVEL / 2], seeds - 1))
    for (estimand, estimator), found in results.groupby(["estimand", "estimator"], sort=False):
        spread = found["mean"].std(ddof=1)
        stated = np.sqrt(found["monte_carlo_se"].pow(2).mean())
        low, high = bounds * spread / stated
        ratio = f"{spread:.4f} / {stated:.4f} = {spread / stated:.2f} [{low:.2f}, {high:.2f}]"
        name = f"{estimand}, {estimator}: {found['mean'].mean():.3f} bits, spread over stated error"
        yield Line(name, ratio, f"{CAUTIOUS} to 1", low <= 1 and high >= CAUTIOUS)


def main() -> None:
    """Print the table."""
    options = arguments()
    folder = options.results / "models" / options.model
    corpus = Corpus.load(options.results / "corpus" / "corpus.json")
    tokens = load_tokens(options.results / "corpus" / "test.npy")[: options.characters]
    text = Text(np.asarray(tokens), corpus.sha256["test"], len(corpus.alphabet))
    surroundings = Surroundings(corpus.alphabet, 1, options.threads, "cpu", options.precision)
    parameters = read_json(folder / "model.json", "parameters")["parameters"]
    model = load(parameters, [str(folder / "model.safetensors")], surroundings)
    found = [
        result
        for seed in range(1, options.seeds + 1)
        for result in one_seed(model, text, options.window, options.draws, seed)
        if result["unit"] == "bits" and result["monte_carlo_se"]
    ]
    print_table(lines(pd.DataFrame(found), options.seeds))


if __name__ == "__main__":
    main()
