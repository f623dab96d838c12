"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from attnaudit import defaults
from attnaudit.cli.help_text import PlainCommand
from attnaudit.errors import UsageError
from attnaudit.records.keep import Keep


class Device(StrEnum):
    """Where the model and the measures run."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


Weights = Annotated[
    Path | None,
    typer.Option(
        help="Weights file of the model: safetensors, a torch file of plain tensors, or packages of the atlas.",
        show_default=False,
    ),
]
RandomWeights = Annotated[
    bool, typer.Option("--random-weights", help="Use an untrained network, initialised from the seed.")
]
Download = Annotated[bool, typer.Option("--download", help="Allow network access to download weights.")]
Images = Annotated[
    Path | None,
    typer.Option(
        help="Folder of images, nested or flat. Default: imagenet_val in $ATTNAUDIT_DATA.", show_default=False
    ),
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
KeepOption = Annotated[
    Keep,
    typer.Option(
        "--keep",
        help="rows: one for every head, input, reference and measure; summaries: a small part of that, with the same "
        "verdicts and page, but nothing of single inputs.",
    ),
]
KEEP_MAPS = "--keep-maps"
KeepMaps = Annotated[
    int | None,
    typer.Option(
        KEEP_MAPS,
        metavar="[N]",
        help="Keep attention maps, eigenvalues and value columns of all heads on the first N inputs "
        f"({defaults.KEPT_MAPS} without a number), for the page to show. It then has small pictures, or the text.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: `<model>-<protocol>-…` in attnaudit-runs.", show_default=False),
]
ClassFolders = Annotated[
    Path | None,
    typer.Option(
        "--images",
        help="Folder with one folder of images per class, or for segmentation with images/ and annotations/.",
        show_default=False,
    ),
]
Parquet = Annotated[
    Path | None,
    typer.Option(
        help="Parquet file with columns img and label, or image and mask for segmentation. Default: test.parquet of "
        "cifar10 (10 classes) or camvid (11 classes of pixels), or imagenet_val (1,000 classes), in $ATTNAUDIT_DATA.",
        show_default=False,
    ),
]
Corruptions = Annotated[
    str, typer.Option(help="Corruptions (attnaudit ls corruptions): comma-separated, `all` or `none`.")
]
Severities = Annotated[str, typer.Option(help="Severities of corruptions, comma-separated.")]
Wide = Annotated[bool, typer.Option("--wide", help="Print all columns of tables, even beyond 80 characters.")]
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


def names_or_all(text: str, option: str) -> tuple[str, ...] | Literal["all"]:
    """A comma-separated list, or `all`; `none` is the empty one."""
    return "all" if text == "all" else names(text, option)


def joined(values: Sequence[object]) -> str:
    """A default as it is typed: the other way round."""
    return ",".join(map(str, values)) or "none"


def one_of(**given: Path | None) -> Path | None:
    """The one option among several that is given."""
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in found)} exclude each other: give only one.")
    return next(iter(found.values()), None)


def input_kind(*, images: Path | None, text: Path | None) -> Literal["images", "text"] | None:
    """What the user says the inputs are."""
    return "images" if images is not None else "text" if text is not None else None


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """A comma-separated list of integers."""
    try:
        return tuple(int(part) for part in listed(text, option))
    except ValueError as error:
        raise UsageError(f"{option} must be a list of integers, such as 1,4,16, got {text}.") from error


def numbers(text: str, option: str) -> tuple[float, ...]:
    """A comma-separated list of numbers."""
    try:
        return tuple(float(part) for part in listed(text, option))
    except ValueError as error:
        raise UsageError(f"{option} must be a list of numbers, such as 0.1,0.3, got {text}.") from error


class KeepMapsCommand(PlainCommand):
    """A command whose `--keep-maps` needs no number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in the number where what follows is none."""
        filled = []
        for place, word in enumerate(args):
            filled.append(word)
            following = args[place + 1] if place + 1 < len(args) else ""
            if word == KEEP_MAPS and not following.lstrip("-").isdigit():
                filled.append(str(defaults.KEPT_MAPS))
        return super().parse_args(ctx, filled)
