"""Images with labels, as `attnaudit robust` and `attnaudit corrupt` take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.errors import InputError, UsageError

if TYPE_CHECKING:
    from attnaudit.sources.labelled import LabelledImages

ClassFolders = Annotated[
    Path | None,
    typer.Option("--images", help="Folder with a folder of images for every class.", show_default=False),
]
Parquet = Annotated[
    Path | None,
    typer.Option(
        help="Parquet file with columns img and label. Default: what $ATTNAUDIT_DATA has for the model's classes, "
        "cifar10/test.parquet for 10, imagenet_val/ for 1,000.",
        show_default=False,
    ),
]
Corruptions = Annotated[
    str, typer.Option(help="Corruptions, comma-separated, `all` or `none` (attnaudit ls corruptions).")
]
Severities = Annotated[str, typer.Option(help="Severities of corruptions, comma-separated.")]
#: Where the data folder has images for that many classes.
_DEFAULTS = {10: "cifar10/test.parquet", 1000: "imagenet_val"}


def labelled(images: Path | None, parquet: Path | None, outputs: int) -> LabelledImages:
    """The images a command names, or those of the data folder for a model with that many outputs."""
    from attnaudit.sources.data import VARIABLE, data_file
    from attnaudit.sources.labelled import read_labelled

    if images is not None and parquet is not None:
        raise UsageError("--images and --parquet exclude each other: give one of them.")
    found = images or parquet or data_file(_DEFAULTS.get(outputs, "?"))
    if found is None:
        raise InputError(
            f"There are no labelled images for {outputs} classes: give --images DIR or --parquet FILE, or point "
            f"{VARIABLE} at the data folder."
        )
    return read_labelled(found)


def corruption_names(text: str) -> tuple[str, ...]:
    """The corruptions that a command names."""
    from attnaudit.cli import options
    from attnaudit.robustness.corruptions import CORRUPTIONS

    return CORRUPTIONS if text == "all" else options.names(text, "--corruptions")
