"""`attnaudit audit`: measure every head of a model."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, say
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol

_DEFAULT_LIMIT = 25


def audit(
    models: Annotated[list[str], typer.Argument(help="Model names, e.g. timm:deit_tiny_patch16_224.")],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    limit: Annotated[int, typer.Option(help="How many pictures to draw.")] = _DEFAULT_LIMIT,
    first: options.First = False,
    seed: options.Seed = 0,
    protocol: Annotated[Protocol, typer.Option(help="exact: right; paper: as the study computed.")] = Protocol.EXACT,
    device: options.DeviceOption = Device.AUTO,
    workers: options.Workers = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Capture every attention head of MODELS, measure it, and store the evidence.

    Examples:
        attnaudit audit timm:deit_tiny_patch16_224 --weights deit_tiny.safetensors --images photos/

        attnaudit audit vit_base_patch16_224 --download --limit 100 --workers 8

        attnaudit audit timm:swin_tiny_patch4_window7_224 --random-weights --limit 2
    """
    from attnaudit.cli import work
    from attnaudit.evidence import SHARD, Settings, plan_audit
    from attnaudit.report.terminal import statistics_table
    from attnaudit.sources.images import image_shards

    specs = work.specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    items = work.pictures(images, limit, seed, first=first, samples_allowed=True)
    settings = Settings(protocol=protocol, seed=seed, device=work.device_name(device))
    plan = plan_audit(specs, image_shards(items, SHARD), settings)
    for model in plan.loaded:
        weights_note = (
            "RANDOM weights: this is an untrained network, its numbers say nothing about training"
            if model.weights_origin == "random"
            else f"weights {model.weights_origin}"
        )
        say(f"Auditing {model.label} on {len(items)} pictures, protocol {protocol.value}, {weights_note}.")
    run = work.carry_out(plan, out, workers, "measuring heads")
    work.report_losses(run)
    if json:
        data_console().print_json(json_module.dumps(run.summary))
    else:
        for label, controls in run.summary["models"].items():
            data_console().print(statistics_table(label, controls["observed"]))
    say(f"Replay error of the capture: {run.summary['capture']['replay_error']:.1e}. Run folder: {Path(run.path)}")
