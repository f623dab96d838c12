"""`attnaudit bench`: time the stages of an audit on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, say
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol

if TYPE_CHECKING:
    from attnaudit.audit.stages import Stages


def bench(
    model: Annotated[str, typer.Argument(help="A vision model; its weights may be random.")] = "deit_tiny_patch16_224",
    limit: Annotated[int | None, typer.Option(min=1, help="Number of noise images. Default: one unit of work.")] = None,
    protocol: Annotated[Protocol, typer.Option(help="Protocol to time.")] = Protocol.PAPER,
    device: options.DeviceOption = Device.AUTO,
    json: options.Json = False,
) -> None:
    """Time the stages of an audit (the measures of Table 1) on this machine, and compare them with a lower bound.

    The lower bound, the floor, is the time of the forward pass, the Gram matrices, the eigensolver and the assignment
    alone. Images are noise, generated beforehand; a CPU uses one thread.

    Examples:
        attnaudit bench

        attnaudit bench vit_small_patch16_224 --protocol exact --device cuda --json
    """
    import torch

    from attnaudit.audit import AuditSettings, plan_audit, shard_size
    from attnaudit.audit.stages import MEASURES, measure_stages
    from attnaudit.cli import work
    from attnaudit.errors import UsageError, WeightsError
    from attnaudit.numerics.threads import single_threaded
    from attnaudit.records.engine import default_memory
    from attnaudit.sources.inputs import tensor_shards
    from attnaudit.sources.model import load_model, parse_model

    try:
        loaded = load_model(parse_model(model))
    except WeightsError:
        loaded = load_model(parse_model(model, random_weights=True))
    config = getattr(loaded.module, "default_cfg", None)
    if config is None:
        raise UsageError(f"{model} reads text, but attnaudit bench times vision models only.")
    place = work.device_name(device)
    count = limit or shard_size(place)
    noise = torch.randn(count, *config["input_size"], generator=torch.Generator().manual_seed(0))
    settings = AuditSettings(protocol=protocol, measures=MEASURES, device=place)
    (unit,) = plan_audit([loaded], tensor_shards(noise, count), settings).units
    trained = "random" if loaded.weights_origin == "random" else "trained"
    name = loaded.label.partition(" ")[0]
    say(f"Timing {name} ({trained} weights) on {count} images of noise at a time, on {_device_label(place)}.")
    with single_threaded():
        stages = measure_stages(loaded, unit, default_memory())
    if json:
        print_json(_as_json(stages, loaded.label, place, protocol))
        return
    data_console().print(_table(stages))


def _device_label(place: str) -> str:
    import torch

    return torch.cuda.get_device_name() if place == "cuda" else "one CPU thread"


def _as_json(stages: Stages, model: str, place: str, protocol: Protocol) -> dict[str, Any]:
    per_head = 1e6 / stages.heads
    return {
        "model": model,
        "device": _device_label(place),
        "protocol": protocol.value,
        "heads": stages.heads,
        "microseconds_per_head": {name: value * per_head for name, value in stages.seconds.items()},
        "other": stages.other * per_head,
        "total": stages.total * per_head,
        "floor": stages.floor * per_head,
        "total_over_floor": stages.total / stages.floor,
    }


def _table(stages: Stages) -> Table:
    from attnaudit.audit.stages import FLOOR

    table = Table(box=box.SIMPLE_HEAD, title=f"{stages.heads:,} heads", title_justify="left")
    table.add_column("stage")
    for column in ("µs per head", "share", "in the floor"):
        table.add_column(column, justify="right")
    for name, spent in (*stages.seconds.items(), ("everything else", stages.other)):
        mark = "yes" if name in FLOOR else ""
        table.add_row(name, f"{spent / stages.heads * 1e6:,.1f}", f"{spent / stages.total:.0%}", mark)
    table.add_section()
    table.add_row("total", f"{stages.total / stages.heads * 1e6:,.1f}", "100%", "")
    table.add_row("floor", f"{stages.floor / stages.heads * 1e6:,.1f}", f"{stages.floor / stages.total:.0%}", "")
    return table
