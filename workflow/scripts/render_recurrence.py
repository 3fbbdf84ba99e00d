"""Stage `render_recurrence`: Figure 1, the recurrent connections of the two kinds of GAN generators."""

from ganlm.figures import recurrence, style
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """Draw it from the list of its arrows."""
    with stage_log(snakemake.log[0], "render_recurrence"):
        arrows = recurrence.connections()
        style.write(recurrence.recurrence(arrows), arrows, snakemake.output)


if __name__ == "__main__":
    main(snakemake)
