"""Stage `render_methods`: formulas, versions, config and code of a run, and how to repeat it."""

import platform

import yaml

from ganlm import pages
from ganlm.files import write_text
from ganlm.logs import stage_log
from ganlm.provenance import package_versions


def main(snakemake) -> None:
    """Versions are those of the environment that stages run in."""
    params = snakemake.params
    with stage_log(snakemake.log[0], "render_methods"):
        page = pages.render(
            snakemake.input.templates,
            title="Methods",
            name=params.config["name"],
            config=params.config,
            config_text=yaml.safe_dump(params.config, sort_keys=False, allow_unicode=True, width=100),
            versions={"python": platform.python_version()} | package_versions(*params.versions),
            fingerprints={source: pages.combined(digests) for source, digests in params.sources.items()},
        )
        write_text(snakemake.output[0], page)


if __name__ == "__main__":
    main(snakemake)
