"""Options that several verbs share, so that they read and behave alike."""

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
Download = Annotated[
    bool, typer.Option("--download", help="Allow the network, to fetch weights. Off: only local files are used.")
]
Images = Annotated[
    Path | None,
    typer.Option(help="Folder of images, nested or flat. Default: $ATTNAUDIT_DATA/imagenet_val.", show_default=False),
]
TextOption = Annotated[
    Path | None,
    typer.Option(
        "--text", help="Text file or folder, for language models. Default: Python's own reference.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
First = Annotated[bool, typer.Option("--first", help="Take the first inputs in order instead of a draw.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Worker processes, one thread each. Default: as many as pay off.", show_default=False),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A dask scheduler whose workers do it, e.g. tcp://127.0.0.1:8786.",
        show_default=False,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What an audit may take, e.g. 8GB; on a cluster, each worker. Default: half of this machine's memory.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: attnaudit-runs/<model>-<protocol>-<hash>.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def listed(text: str, option: str) -> tuple[str, ...]:
    """A comma-separated list of one entry at least: an empty one is a mistake, such as a variable that is not set."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise UsageError(f"{option} is empty: give a comma-separated list, or leave the option out.")
    return found


def names(text: str, option: str) -> tuple[str, ...]:
    """A comma-separated list; `none` is the empty one."""
    return () if text == "none" else listed(text, option)


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """A comma-separated list of whole numbers."""
    try:
        return tuple(int(part) for part in listed(text, option))
    except ValueError as error:
        raise UsageError(f"{option} {text} is not a list of whole numbers, e.g. 1,4,16.") from error
