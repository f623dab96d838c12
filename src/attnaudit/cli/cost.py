"""`attnaudit cost`: what attention variants cost in whole networks."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.errors import UsageError
from attnaudit.report.console import data_console, print_json

#: torch's profiler, which counts memory on a CPU, writes lines of its own unless it is told before torch is imported.
_QUIET = {"KINETO_LOG_LEVEL": "99", "TORCH_CPP_LOG_LEVEL": "ERROR"}

#: Options that say what is measured.
_MEASURED = ("sizes", "batch", "repeats", "device")


def cost(
    context: typer.Context,
    sizes: Annotated[str, typer.Option(help="Sizes of DeiT, comma-separated.")] = "tiny,small,base",
    batch: Annotated[int, typer.Option(min=1, help="Images of a pass.")] = 8,
    repeats: Annotated[int, typer.Option(min=2, help="Passes that are timed.")] = 10,
    device: options.DeviceOption = Device(defaults.DEVICE),
    recorded: Annotated[
        Path | None,
        typer.Option(help="Folder of an earlier --out: judge and draw its numbers again.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the table and the figure.", show_default=False)] = None,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Measure what attention variants cost in whole networks: operations, memory and time.

    Vision transformers of DeiT's sizes have every variant in all blocks, and RPC-Attention in the first block of a
    symmetric network, too. Operations are counted by hand and by torch, which must agree. Times are those of passes
    that run in turn with symmetric attention's: on a CPU the processor's, on one thread; on a GPU also of CUDA graphs.

    Examples:
        attnaudit cost --sizes tiny --batch 2

        attnaudit cost --device cuda --batch 64 --repeats 10 --out cost/

        attnaudit cost --recorded cost/ --wide
    """
    if recorded is not None:
        _refuse_ignored(context)
    os.environ.update(_QUIET | os.environ)  # what a user has set stays
    from attnaudit.api.costs import cost as measured
    from attnaudit.records import json_file
    from attnaudit.report.costs import cost_report
    from attnaudit.report.verdicts import verdict_report

    found = measured(
        options.listed(sizes, "--sizes"),
        batch=batch,
        repeats=repeats,
        device=device.value,
        recorded=recorded,
        out=out,
    )
    if json:
        verdicts = [asdict(verdict) for verdict in found.judgement.verdicts]
        print_json({"costs": json_file.plain(found.table), "verdicts": verdicts})
        return
    console, judgement = data_console(wide=wide), found.judgement
    console.print(cost_report(found.table, judgement.verdicts, wide=wide))
    console.print(verdict_report(judgement.verdicts, judgement.levels, wide=wide))


def _refuse_ignored(context: typer.Context) -> None:
    """Options of a measurement say nothing of a recorded one.

    Raises:
        UsageError: one of them is given.
    """
    for name in _MEASURED:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"--{name} says what to measure, but --recorded measures nothing: give only one.")
