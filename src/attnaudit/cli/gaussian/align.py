"""`attnaudit gaussian align`: do trained heads find the first principal component?"""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import (
    CovarianceFile,
    Dim,
    OptimiserChoice,
    OptimiserOption,
    Out,
    Prompts,
    Rate,
    Runs,
    Steps,
    show,
)
from attnaudit.cli.options import Device


def align(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    length: Annotated[int, typer.Option(help="Tokens per prompt.")] = 32,
    runs: Runs = 4,
    steps: Steps = 600,
    prompts: Prompts = None,
    queries: Annotated[int, typer.Option(min=1, help="Queries per prompt.")] = 16,
    rate: Rate = 0.05,
    optimiser: OptimiserOption = OptimiserChoice.ADAM,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Train both kernels on Gaussian, isotropic and skewed tokens, and judge whether they align with v₁.

    Examples:
        attnaudit gaussian align --dim 20

        attnaudit gaussian align --covariance mine.csv --length 64 --runs 8

        attnaudit gaussian align --dim 512 --length 4096 --queries 256 --steps 1500 --rate 0.02 --runs 2 --device cuda
    """
    from attnaudit.api import laboratory

    show(
        laboratory.align(
            dim,
            covariance,
            length=length,
            runs=runs,
            steps=steps,
            prompts=prompts,
            queries=queries,
            rate=rate,
            optimiser=optimiser.value,
            seed=seed,
            device=device.value,
            out=out,
        ),
        json,
    )
