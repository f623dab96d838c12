"""`attnaudit gaussian finite-prompt`: how the error of the direction falls with data."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import CovarianceFile, Dim, Out, show
from attnaudit.cli.options import Device


def finite_prompt(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    lengths: Annotated[str, typer.Option(help="Tokens of a single prompt.")] = "64,256,1024,4096",
    repeats: Annotated[int, typer.Option(help="Single prompts of each length; data sets of many: a tenth.")] = 200,
    prompts: Annotated[int, typer.Option(min=2, help="Prompts in a data set of many.")] = 2000,
    prompt_length: Annotated[int, typer.Option(help="Tokens per prompt in a data set of many.")] = 64,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Measure how the error of the direction falls with data, against Λ/L and κ_LΛ/N.

    Examples:
        attnaudit gaussian finite-prompt

        attnaudit gaussian finite-prompt --dim 5 --lengths 128,512,2048 --repeats 400
    """
    from attnaudit.api import laboratory

    show(
        laboratory.finite_prompt(
            dim,
            covariance,
            lengths=options.whole_numbers(lengths, "--lengths"),
            repeats=repeats,
            prompts=prompts,
            prompt_length=prompt_length,
            seed=seed,
            device=device.value,
            out=out,
        ),
        json,
    )
