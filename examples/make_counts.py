"""Draw from a generator of your own, wherever it runs, and bring back nothing but counts.

    python examples/make_counts.py results/demo/corpus counts.csv

writes the table that `kind: counts` reads. Replace `draw` by your generator.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "workflow/scripts"))

from copy_sampler import CopySampler

from ganlm.corpus import Alphabet


def main() -> None:
    """Count hits at every position of some whole blocks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="folder with test.npy and corpus.json")
    parser.add_argument("output", type=Path)
    parser.add_argument("--text", default="examples/training.txt", help="what the sampler copies from")
    parser.add_argument(
        "--window", type=int, default=1000, help="the state restarts every so many characters"
    )
    parser.add_argument("--block", type=int, default=250, help="evaluation.block of your config")
    parser.add_argument("--blocks", type=int, default=24, help="how many blocks, spread over the test part")
    parser.add_argument("--draws", type=int, default=500)
    arguments = parser.parse_args()

    description = json.loads((arguments.corpus / "corpus.json").read_text())
    tokens = np.load(arguments.corpus / "test.npy").astype(np.int64)
    alphabet = Alphabet(tuple(description["alphabet"]["symbols"]))
    sampler, rng = CopySampler(alphabet, 1, arguments.text), np.random.default_rng(1)

    blocks = np.arange(arguments.blocks) * (len(tokens) // arguments.block) // arguments.blocks
    with arguments.output.open("w") as table:
        table.write(
            f"# ganlm counts, version 1, test sha256 {description['sha256']['test']}, "
            f"window {arguments.window}\n"
            "position,n,k\n"
        )
        for position in (blocks[:, None] * arguments.block + np.arange(arguments.block)).ravel():
            prefix = tokens[position - position % arguments.window : position]
            (drawn,) = sampler.draw([prefix], [arguments.draws], rng)
            table.write(f"{position},{arguments.draws},{(drawn == tokens[position]).sum()}\n")


if __name__ == "__main__":
    main()
