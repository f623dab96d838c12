"""From the options of a verb to a finished run; torch is imported here, when a verb really runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import progress_bar, say
from attnaudit.cli.options import Device
from attnaudit.errors import UsageError

if TYPE_CHECKING:
    from attnaudit.evidence import Measured, Plan
    from attnaudit.sources.images import ImageItem
    from attnaudit.sources.model import ModelSpec

RUNS = Path("attnaudit-runs")
_UNITS_PER_WORKER = 2  # a worker needs seconds to start, so it should have something to do


def specs(
    names: Sequence[str], *, weights: Path | None, random_weights: bool, seed: int, download: bool
) -> list[ModelSpec]:
    """The models a command names."""
    from attnaudit.sources.model import parse_model

    if weights is not None and len(names) != 1:
        raise UsageError(f"--weights belongs to one model, but {len(names)} are given.")
    return [
        parse_model(name, weights=weights, random_weights=random_weights, seed=seed, download=download)
        for name in names
    ]


def pictures(
    folder: Path | None, limit: int | None, seed: int, *, first: bool, samples_allowed: bool
) -> tuple[ImageItem, ...]:
    """The pictures a command asks for: its folder, the data folder's, or samples of an installed package."""
    from attnaudit.errors import InputError
    from attnaudit.sources.data import VARIABLE, data_images
    from attnaudit.sources.images import choose_images, find_images, sample_images

    root = folder or data_images()
    if root is not None:
        paths = find_images(root)
    elif samples_allowed:
        paths = sample_images()
        root = paths[0].parent
        say(f"No --images given and {VARIABLE} is unset: using {len(paths)} photographs that scikit-image carries.")
    else:
        raise InputError(
            f"There are no pictures to work on: give --images DIR, or point {VARIABLE} at the data folder."
        )
    if first and limit is not None:
        paths = paths[: max(limit, 0)] if limit > 0 else paths
    return choose_images(paths, root, limit, seed)


def device_name(device: Device) -> str:
    """`cpu` or `cuda`, what there is."""
    import torch

    if device is Device.CUDA and not torch.cuda.is_available():
        raise UsageError("--device cuda, but torch sees no CUDA device here: use --device cpu.")
    if device is Device.AUTO:
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device.value


def carry_out(plan: Plan, out: Path | None, workers: int | None, label: str) -> Measured:
    """Run a plan with a progress bar, in its folder."""
    from attnaudit.evidence import execute

    units = len(plan.keys)
    if workers is None:
        workers = max(1, min(os.cpu_count() or 1, units // _UNITS_PER_WORKER))
    if plan.settings.device != "cpu":
        workers = 1
    with progress_bar(label) as progress:
        return execute(plan, out=out or RUNS / plan.name, workers=workers, progress=progress)


def report_losses(run: Measured) -> None:
    """Say what was left out, with reasons and numbers."""
    for name, reason in run.summary["skipped_inputs"]:
        say(f"skipped input {name}: {reason}")
    for layer, reason in run.summary["capture"]["refused_layers"]:
        say(f"refused layer {layer}: {reason}")
    losses: dict[str, tuple[int, int]] = {}
    for controls in run.summary["models"].values():
        for statistic in controls.get("observed", {}).values():
            for reason, count in statistic["rejected"].items():
                most, measures = losses.get(reason, (0, 0))
                losses[reason] = (max(most, count), measures + 1)
    for reason, (count, measures) in losses.items():
        say(f"rejected: {count:,} heads in {measures} measures, because {reason}")
