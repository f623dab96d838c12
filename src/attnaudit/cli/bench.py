"""`attnaudit bench`: time the default audit by stage on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.report.console import data_console, print_json


def bench(
    model: Annotated[
        str, typer.Argument(help="A vision or text model; without local weights it has random ones.")
    ] = defaults.BENCHED,
    weights: options.Weights = None,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[int, typer.Option(min=2, help="Number of images or passages to draw.")] = defaults.LIMIT,
    device: options.DeviceOption = Device(defaults.DEVICE),
    json: options.Json = False,
) -> None:
    """Time the default audit by stage on this machine, and compare it with a lower bound.

    A real audit runs, from reading the inputs to writing the page, in one process with one thread. The lower bound,
    the floor, is what the linear algebra behind its numbers takes by itself, each piece computed once. On a CPU the
    time is that of the processor; on a GPU it is wall time.

    Examples:
        attnaudit bench

        attnaudit bench minilm --limit 12 --device cpu

        attnaudit bench deit_tiny_patch16_224 --weights deit_tiny.safetensors --images photos/ --device cuda --json
    """
    from attnaudit.api.benchmark import bench as timed
    from attnaudit.report.stages import stages_report

    found = timed(model, options.one_of(images=images, text=text), weights=weights, limit=limit, device=device.value)
    if json:
        print_json(found.record)
    else:
        data_console().print(stages_report(found))
