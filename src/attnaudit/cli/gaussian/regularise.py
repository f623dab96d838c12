"""`attnaudit gaussian regularise`: does a PCA-like regulariser speed convergence to v₁ up?"""

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
    Rate,
    Runs,
    Steps,
    show,
)
from attnaudit.cli.options import Device


def regularise(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    strengths: Annotated[str, typer.Option(help="Strengths γ of the regulariser, beside 0.")] = "0.1,1,10",
    length: Annotated[int, typer.Option(help="Tokens per prompt.")] = 32,
    runs: Runs = 8,
    steps: Steps = 600,
    rate: Rate = 0.05,
    optimiser: OptimiserOption = OptimiserChoice.ADAM,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Train heads with and without a PCA-like regulariser, and judge whether it speeds convergence to v₁ up.

    Examples:
        attnaudit gaussian regularise --dim 20

        attnaudit gaussian regularise --strengths 0.3,3 --optimiser sgd --rate 0.02 --runs 12
    """
    from attnaudit.api import laboratory

    show(
        laboratory.regularise(
            dim,
            covariance,
            strengths=options.numbers(strengths, "--strengths"),
            length=length,
            runs=runs,
            steps=steps,
            rate=rate,
            optimiser=optimiser.value,
            seed=seed,
            device=device.value,
            out=out,
        ),
        json,
    )
