"""`attnaudit gaussian align`: do trained heads find the first principal component?"""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import say
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
    at_work,
    covariance_for,
    deliver,
    recipe_for,
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
    seed: options.Seed = 0,
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
    from attnaudit.claims.gaussian_alignment import CLAIM
    from attnaudit.gaussian.checks import check_length
    from attnaudit.gaussian.experiments.align import align as experiment
    from attnaudit.report.gaussian_figures import align_figure

    check_length(length)
    sigma = covariance_for(dim, covariance, seed, device, default=20)
    recipe = recipe_for(steps, prompts, queries, rate, optimiser, length)
    say(
        f"Training 6 x {runs} heads of dimension {len(sigma)} on prompts of {length} tokens, "
        f"{recipe.prompts} prompts per step."
    )
    with at_work("training") as progress:
        findings = experiment(sigma, length, runs=runs, recipe=recipe, seed=seed, progress=progress)
    theory = {check.quantity: check.theory for check in findings.checks}
    sizes = {kernel: theory[f"{kernel}: s = μᵀΣμ"] or 0.0 for kernel in ("linear", "softmax")}
    title = f"Alignment, d = {len(sigma)}, L = {length}, seed {seed}"
    deliver("align", title, findings, lambda paths: align_figure(findings.records, sizes, paths), out, json, CLAIM)
