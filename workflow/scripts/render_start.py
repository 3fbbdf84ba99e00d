"""Stage `render_start`: the answer of this run on one page, from its Table 1, Figure 2 and findings."""

from pathlib import Path

import pandas as pd

from ganlm import formats, pages, tables
from ganlm.files import write_text
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """A half-finished run may lack the table or the figure; the page says so."""
    files, params = snakemake.input, snakemake.params
    with stage_log(snakemake.log[0], "render_start"):
        judged = pages.claims(_read(files.findings))
        values = {"leaders": {}, "gaps": {}, "table": "", "metric": "", "figure": ""}
        for path in files.table:
            table1 = _read(path)
            values |= {
                "metric": tables.metric_of(table1),
                "leaders": pages.leaders(table1, params.protocol),
                "gaps": pages.gaps(table1, params.protocol),
                "table": formats.html_table(tables.compact(pages.ours_first(table1))),
            }
        for path in files.figure:
            values["figure"] = pages.data_uri(Path(path).read_bytes())
        page = pages.render(
            files.templates,
            title="Start here",
            name=params.name,
            protocol=params.protocol,
            draws=params.draws,
            claims=judged,
            tally=pages.tally(judged),
            **values,
        )
        write_text(snakemake.output[0], page)


def _read(path: str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


if __name__ == "__main__":
    main(snakemake)
