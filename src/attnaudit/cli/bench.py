"""`attnaudit bench`: time the stages of an audit on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol
from attnaudit.report.console import data_console, print_json


def bench(
    model: Annotated[str, typer.Argument(help="A vision model; its weights may be random.")] = defaults.BENCHED,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of noise images. Default: one unit of work.")] = None,
    protocol: Annotated[Protocol, typer.Option(help="Protocol to time.")] = Protocol.PAPER,
    device: options.DeviceOption = Device(defaults.DEVICE),
    json: options.Json = False,
) -> None:
    """Time the stages of an audit (the measures of Table 1) on this machine, and compare them with a lower bound.

    The lower bound, the floor, is the time of the forward pass, the Gram matrices, the eigensolver and the assignment
    alone. Images are noise, generated beforehand; a CPU uses one thread.

    Examples:
        attnaudit bench

        attnaudit bench vit_small_patch16_224 --protocol exact --device cuda --json
    """
    from attnaudit.api.machine import bench as timed
    from attnaudit.report.stages import stages_table

    found = timed(model, limit=limit, protocol=protocol, device=device.value)
    if json:
        print_json(found.record)
    else:
        data_console().print(stages_table(found.stages))
