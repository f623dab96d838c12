"""`attnaudit gaussian finite-prompt`: how the error of the direction falls with data."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import CovarianceFile, Dim, Out, at_work, covariance_for, deliver
from attnaudit.cli.options import Device


def finite_prompt(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    lengths: Annotated[str, typer.Option(help="Tokens of a single prompt.")] = "64,256,1024,4096",
    repeats: Annotated[int, typer.Option(help="Single prompts of each length; data sets of many: a tenth.")] = 200,
    prompts: Annotated[int, typer.Option(min=2, help="Prompts in a data set of many.")] = 2000,
    prompt_length: Annotated[int, typer.Option(help="Tokens per prompt in a data set of many.")] = 64,
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Measure how the error of the direction falls with data, against Λ/L and κ_LΛ/N.

    Examples:
        attnaudit gaussian finite-prompt

        attnaudit gaussian finite-prompt --dim 5 --lengths 128,512,2048 --repeats 400
    """
    from attnaudit.claims.gaussian_finite_prompt import CLAIM
    from attnaudit.gaussian.experiments.finite_prompt import finite_prompt_error
    from attnaudit.report.gaussian_figures import error_figure

    chosen = options.whole_numbers(lengths, "--lengths")
    sigma = covariance_for(dim, covariance, seed, device, default=10)
    with at_work("fitting data sets") as progress:
        findings = finite_prompt_error(
            sigma,
            chosen,
            repeats=repeats,
            prompts=prompts,
            prompt_length=prompt_length,
            seed=seed,
            progress=progress,
        )
    title = f"Finite data, d = {len(sigma)}, seed {seed}"
    deliver("finite-prompt", title, findings, lambda paths: error_figure(findings.records, paths), out, json, CLAIM)
