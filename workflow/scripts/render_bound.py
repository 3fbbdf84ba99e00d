"""Stage `render_bound`: how many draws guarantee an accuracy, and what accuracy the paper's N guarantees."""

from itertools import product

import numpy as np
import pandas as pd

from ganlm.figures import draws, style
from ganlm.logs import stage_log
from ganlm.sample_size import hoeffding_draws, hoeffding_gamma

# What the paper computes for 27 characters and for 50,000 words, and what it used.
PUBLISHED = pd.DataFrame({"alphabet": [27, 50_000], "gamma": 1e-3, "epsilon": 1e-2, "draws": [4.3e6, 8.1e6]})
PUBLISHED_DRAWS = 2000
ALPHABETS = (1, 27, 50_000)
GAMMAS = np.geomspace(1e-4, 0.2, 67)


def main(snakemake) -> None:
    """One curve per alphabet, beside the paper's examples and the numbers of draws that were used."""
    epsilon, run = snakemake.params.epsilon, snakemake.params.draws
    with stage_log(snakemake.log[0], "render_bound"):
        asked = [
            (size, g, epsilon, hoeffding_draws(g, epsilon, size)) for size, g in product(ALPHABETS, GAMMAS)
        ]
        curves = pd.DataFrame(asked, columns=list(PUBLISHED))
        numbers = {"the paper": PUBLISHED_DRAWS} | (
            {} if run in ("chosen", PUBLISHED_DRAWS) else {"this run": run}
        )
        used = [
            (who, n, size, hoeffding_gamma(n, epsilon, size))
            for who, n in numbers.items()
            for size in ALPHABETS
        ]
        used = pd.DataFrame(used, columns=["used_by", "draws", "alphabet", "gamma"])
        data = pd.concat(
            [curves.assign(kind="bound"), PUBLISHED.assign(kind="published"), used.assign(kind="used")]
        )
        style.write(draws.bound(curves, PUBLISHED, used), data, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
