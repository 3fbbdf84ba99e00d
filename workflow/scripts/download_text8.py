"""Stage `download_text8`: fetch text8 from the first source that works, and check it."""

from pathlib import Path

from ganlm.download import TEXT8, TEXT8_SOURCES, download
from ganlm.logs import stage_log


def main(snakemake) -> None:
    """Download to the declared output."""
    with stage_log(snakemake.log[0], "download_text8"):
        download(TEXT8_SOURCES, Path(snakemake.output[0]), TEXT8)


if __name__ == "__main__":
    main(snakemake)
