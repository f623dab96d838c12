"""`attnaudit gaussian landscape`: the risk on a plane, and its critical points."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import CovarianceFile, Dim, Out, show
from attnaudit.cli.options import Device


def landscape(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens per prompt. Default: infinitely many.", show_default=False)
    ] = None,
    axes: Annotated[str, typer.Option(help="Numbers of the two eigenvectors that span the plane.")] = "1,2",
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Draw the risk on the plane of two eigenvectors, and check the risk at its critical points by simulation.

    Examples:
        attnaudit gaussian landscape

        attnaudit gaussian landscape --dim 5 --length 8 --axes 1,3
    """
    from attnaudit.api import laboratory

    show(
        laboratory.landscape(
            dim,
            covariance,
            length=length,
            axes=options.whole_numbers(axes, "--axes"),
            seed=seed,
            device=device.value,
            out=out,
        ),
        json,
    )
