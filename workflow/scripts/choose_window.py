"""Stage `choose_window`: the length of the window that the validation part prefers."""

import logging

from ganlm.files import write_json
from ganlm.logs import stage_log
from ganlm.resultfiles import read_summary
from ganlm.sweep import choice


def main(snakemake) -> None:
    """The test part has no say: this stage does not read it."""
    with stage_log(snakemake.log[0], f"choose_window {snakemake.wildcards.model}"):
        summary = read_summary(snakemake.input[0])
        chosen = choice(summary["results"])
        write_json(snakemake.output[0], {"model": summary["model"]} | chosen)
        logging.info("%s: window %d", summary["model"], chosen["window"])


if __name__ == "__main__":
    main(snakemake)
