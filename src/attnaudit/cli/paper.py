"""`attnaudit paper`: repeat a table or figure of the reproduction study, with published numbers beside ours."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.report.console import data_console, print_json


class Item(StrEnum):
    """The tables and figures that can be repeated."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    TABLE3 = "table3"
    TABLE4 = "table4"
    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FIGURE4 = "figure4"
    FIGURE5 = "figure5"
    FORENSICS = "forensics"


def paper(
    item: Annotated[Item, typer.Argument(help="The table or figure.", show_default=False)],
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL|RUN",
            help="Models. Default: those of the study with local weights. For figure1 and figure4: folders written by "
            "attnaudit train.",
            show_default=False,
        ),
    ] = None,
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[
        int | None, typer.Option(help="Number of images or lines. Default: as in the study.", show_default=False)
    ] = None,
    first: options.First = False,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device(defaults.DEVICE),
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    out: options.Out = None,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Repeat a table or figure of Sarıtaş & Yıldız (2025) under their protocol.

    `forensics` tries 96 conventions for the eigenvalues reported by Teo & Nguyen (2024).

    Examples:
        attnaudit paper table1 deit_tiny_patch16_224 --weights deit_tiny.safetensors --images imagenet/val

        attnaudit paper table2 --download --images imagenet/val --workers 8

        attnaudit paper table1 --download --images /data/imagenet/val --cluster tcp://127.0.0.1:8786

        attnaudit paper figure3 vit_tiny_patch16_224 --download --images imagenet/val --out figures/

        attnaudit paper figure1 attnaudit-runs/study-vit-tiny-0 attnaudit-runs/study-deit-tiny-0 --out figures/
    """
    from attnaudit.api.papers import paper as repeated
    from attnaudit.report.terminal import repetition_report

    result = repeated(
        item.value,
        models,
        options.one_of(images=images, text=text),
        kind=options.input_kind(images=images, text=text),
        weights=weights,
        random_weights=random_weights,
        download=download,
        limit=limit,
        first=first,
        seed=seed,
        device=device.value,
        workers=workers,
        cluster=cluster,
        memory=memory,
        out=out,
    )
    if json:
        print_json(result.rows)
    elif (shown := repetition_report(result, wide=wide)) is not None:
        data_console(wide=wide).print(shown)
