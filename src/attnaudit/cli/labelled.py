"""Options for labelled images, shared by `attnaudit robust` and `attnaudit corrupt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.errors import InputError, UsageError

if TYPE_CHECKING:
    from attnaudit.sources.labelled import LabelledImages

ClassFolders = Annotated[
    Path | None,
    typer.Option("--images", help="Folder with one folder of images per class.", show_default=False),
]
Parquet = Annotated[
    Path | None,
    typer.Option(
        help="Parquet file with columns img and label. Default: cifar10/test.parquet (10 classes) or imagenet_val/ "
        "(1,000 classes) in $ATTNAUDIT_DATA.",
        show_default=False,
    ),
]
Corruptions = Annotated[
    str, typer.Option(help="Corruptions (attnaudit ls corruptions): comma-separated, `all` or `none`.")
]
Severities = Annotated[str, typer.Option(help="Severities of corruptions, comma-separated.")]
#: The images in the data folder, by number of classes.
_DEFAULTS = {10: "cifar10/test.parquet", 1000: "imagenet_val"}


def labelled(images: Path | None, parquet: Path | None, outputs: int) -> LabelledImages:
    """The images that the options name, or those of the data folder for a model with this number of outputs."""
    from attnaudit.sources.data import VARIABLE, data_file
    from attnaudit.sources.labelled import read_labelled

    if images is not None and parquet is not None:
        raise UsageError("--images and --parquet exclude each other: give only one.")
    found = images or parquet or data_file(_DEFAULTS.get(outputs, "?"))
    if found is None:
        raise InputError(
            f"No labelled images for {outputs} classes were found: give --images DIR or --parquet FILE, or set "
            f"{VARIABLE} to the data folder."
        )
    return read_labelled(found)


def corruption_names(text: str) -> tuple[str, ...]:
    """The corruptions that the option names."""
    from attnaudit.cli import options
    from attnaudit.robustness.corruptions import CORRUPTIONS

    return CORRUPTIONS if text == "all" else options.names(text, "--corruptions")
