"""Options shared by several commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.errors import UsageError


class Device(StrEnum):
    """Where the model and the measures run."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


Weights = Annotated[
    Path | None,
    typer.Option(help="Weights file of the model: safetensors, or a torch file of plain tensors.", show_default=False),
]
RandomWeights = Annotated[
    bool, typer.Option("--random-weights", help="Audit an untrained network, initialised from the seed.")
]
Download = Annotated[bool, typer.Option("--download", help="Allow network access to download weights.")]
Images = Annotated[
    Path | None,
    typer.Option(help="Folder of images, nested or flat. Default: $ATTNAUDIT_DATA/imagenet_val.", show_default=False),
]
TextOption = Annotated[
    Path | None,
    typer.Option(
        "--text", help="Text file or folder, for language models. Default: Python's reference.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
First = Annotated[bool, typer.Option("--first", help="Take the first inputs in order, not random ones.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Worker processes, one thread each. Default: as many as are useful.", show_default=False),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a dask scheduler whose workers do the work, such as tcp://127.0.0.1:8786.",
        show_default=False,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit, such as 8GB; on a cluster, per worker. Default: half of this machine's memory.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: attnaudit-runs/<model>-<protocol>-<hash>.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def listed(text: str, option: str) -> tuple[str, ...]:
    """A comma-separated list with at least one entry; an empty list is an error, such as from an unset variable."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise UsageError(f"{option} must not be empty: give a comma-separated list, or omit the option.")
    return found


def names(text: str, option: str) -> tuple[str, ...]:
    """A comma-separated list; `none` is the empty list."""
    return () if text == "none" else listed(text, option)


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """A comma-separated list of integers."""
    try:
        return tuple(int(part) for part in listed(text, option))
    except ValueError as error:
        raise UsageError(f"{option} must be a list of integers, such as 1,4,16, got {text}.") from error
