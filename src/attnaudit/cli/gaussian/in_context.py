"""`attnaudit gaussian in-context`: train heads over many tasks, and recover a spike from few."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import Out, Runs, Steps, show
from attnaudit.cli.options import Device


def in_context(
    dim: Annotated[int, typer.Option(help="Training: dimension.")] = 20,
    theta: Annotated[float, typer.Option(help="Training: θ of the spike V = I + θvvᵀ.")] = 2.0,
    degrees: Annotated[int, typer.Option("--degrees", "-n", help="Training: n of Σ ~ Wishart(V, n).")] = 20,
    length: Annotated[int, typer.Option(help="Training: tokens per prompt.")] = 64,
    runs: Runs = 4,
    steps: Steps = 600,
    tasks: Annotated[str, typer.Option(help="Recovery: numbers of tasks K.")] = "1,4,16",
    recovery_degrees: Annotated[str, typer.Option(help="Recovery: values of n.")] = "50,200",
    recovery_dim: Annotated[int, typer.Option(help="Recovery: dimension.")] = 100,
    repeats: Annotated[int, typer.Option(min=2, help="Recovery: repetitions per setting.")] = 8,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Train heads over tasks with spiked Wishart covariances; then recover the spike from few, beside the BBP curve.

    Examples:
        attnaudit gaussian in-context

        attnaudit gaussian in-context --theta 0.5 -n 50 --tasks 1,8
    """
    from attnaudit.api import laboratory

    show(
        laboratory.in_context(
            dim,
            theta=theta,
            degrees=degrees,
            length=length,
            runs=runs,
            steps=steps,
            tasks=options.whole_numbers(tasks, "--tasks"),
            recovery_degrees=options.whole_numbers(recovery_degrees, "--recovery-degrees"),
            recovery_dim=recovery_dim,
            repeats=repeats,
            seed=seed,
            device=device.value,
            out=out,
        ),
        json,
    )
