"""`attnaudit gaussian landscape`: the risk on a plane, and its critical points."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import CovarianceFile, Dim, Out, at_work, covariance_for, deliver
from attnaudit.cli.options import Device
from attnaudit.errors import UsageError


def landscape(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens per prompt. Default: infinitely many.", show_default=False)
    ] = None,
    axes: Annotated[str, typer.Option(help="Numbers of the two eigenvectors that span the plane.")] = "1,2",
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Draw the risk on the plane of two eigenvectors, and check the risk at its critical points by simulation.

    Examples:
        attnaudit gaussian landscape

        attnaudit gaussian landscape --dim 5 --length 8 --axes 1,3
    """
    from attnaudit.gaussian.checks import check_length
    from attnaudit.gaussian.experiments.landscape import landscape as experiment
    from attnaudit.report.gaussian_figures import landscape_figure

    if length is not None:
        check_length(length)
    chosen = options.whole_numbers(axes, "--axes")
    if len(chosen) != 2:
        raise UsageError(f"--axes must be two numbers, such as 1,2, got {axes}.")
    sigma = covariance_for(dim, covariance, seed, device, default=5)
    with at_work("simulating") as progress:
        findings = experiment(sigma, length, (chosen[0], chosen[1]), seed=seed, progress=progress)
    first, second = (rf"$\langle\mu, v_{{{axis}}}\rangle$" for axis in chosen)
    title = f"Critical points, d = {len(sigma)}, L = {'∞' if length is None else length}, seed {seed}"
    deliver(
        "landscape",
        title,
        findings,
        lambda paths: landscape_figure(findings.records, (first, second), paths),
        out,
        json,
    )
