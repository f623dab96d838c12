"""`attnaudit gaussian`: attention-based PCA in the laboratory, theory beside measurement."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from attnaudit.cli import options
from attnaudit.cli.console import say
from attnaudit.cli.laboratory import (
    CovarianceFile,
    Dim,
    Optimiser,
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
    whole_numbers,
)
from attnaudit.cli.options import Device
from attnaudit.errors import UsageError

app = typer.Typer(
    help="Attention-based PCA where the answer is known: closed forms, training, verdicts (Maulen-Soto & Boyer 2026).",
    no_args_is_help=True,
)


@app.command()
def align(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    length: Annotated[int, typer.Option(help="Tokens of a prompt.")] = 32,
    runs: Runs = 4,
    steps: Steps = 600,
    prompts: Prompts = None,
    queries: Annotated[int, typer.Option(min=1, help="Tokens of a prompt that ask.")] = 16,
    rate: Rate = 0.05,
    optimiser: OptimiserOption = Optimiser.ADAM,
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
    say(f"Training 6 x {runs} heads of dimension {len(sigma)} on prompts of {length}, {recipe.prompts} a step.")
    with at_work("training") as progress:
        findings = experiment(sigma, length, runs=runs, recipe=recipe, seed=seed, progress=progress)
    theory = {check.quantity: check.theory for check in findings.checks}
    sizes = {kernel: theory[f"{kernel}: s = μᵀΣμ"] or 0.0 for kernel in ("linear", "softmax")}
    title = f"Alignment, d = {len(sigma)}, L = {length}, seed {seed}"
    deliver("align", title, findings, lambda paths: align_figure(findings.records, sizes, paths), out, json, CLAIM)


@app.command()
def landscape(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a prompt; default: infinitely many.", show_default=False)
    ] = None,
    axes: Annotated[str, typer.Option(help="The two eigenvectors that span the section.")] = "1,2",
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Draw the risk over a plane of two eigenvectors, with its critical points, and check their risks by simulation.

    Examples:
        attnaudit gaussian landscape

        attnaudit gaussian landscape --dim 5 --length 8 --axes 1,3
    """
    from attnaudit.gaussian.checks import check_length
    from attnaudit.gaussian.experiments.landscape import landscape as experiment
    from attnaudit.report.gaussian_figures import landscape_figure

    if length is not None:
        check_length(length)
    chosen = whole_numbers(axes, "--axes")
    if len(chosen) != 2:
        raise UsageError(f"--axes {axes} names {len(chosen)} axes, but a section is a plane: give two, e.g. 1,2.")
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


@app.command("finite-prompt")
def finite_prompt(
    dim: Dim = None,
    covariance: CovarianceFile = None,
    lengths: Annotated[str, typer.Option(help="Lengths of the one prompt.")] = "64,256,1024,4096",
    repeats: Annotated[int, typer.Option(help="Data sets of each length; a tenth as many of many prompts.")] = 200,
    prompts: Annotated[int, typer.Option(min=2, help="Prompts of a data set of many.")] = 2000,
    prompt_length: Annotated[int, typer.Option(help="Tokens of each of them.")] = 64,
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

    chosen = whole_numbers(lengths, "--lengths")
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


@app.command("in-context")
def in_context(
    dim: Annotated[int, typer.Option(help="Dimension of heads trained on fresh tasks.")] = 20,
    theta: Annotated[float, typer.Option(help="Their spike: V = I + θvvᵀ.")] = 2.0,
    degrees: Annotated[int, typer.Option("--degrees", "-n", help="Their n: Σ ~ Wishart(V, n).")] = 20,
    length: Annotated[int, typer.Option(help="Tokens of a prompt.")] = 64,
    runs: Runs = 4,
    steps: Steps = 600,
    tasks: Annotated[str, typer.Option(help="Recovery from K tasks: values of K.")] = "1,4,16",
    recovery_degrees: Annotated[str, typer.Option(help="Recovery: values of n.")] = "50,200",
    recovery_dim: Annotated[int, typer.Option(help="Recovery: dimension.")] = 100,
    repeats: Annotated[int, typer.Option(min=2, help="Recovery: repetitions of each setting.")] = 8,
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.CPU,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Train heads over tasks with spiked Wishart covariances; then see what few tasks recover, beside the BBP curve.

    Examples:
        attnaudit gaussian in-context

        attnaudit gaussian in-context --theta 0.5 -n 50 --tasks 1,8
    """
    from attnaudit.claims.gaussian_in_context import CLAIM
    from attnaudit.cli import work
    from attnaudit.gaussian.experiments.in_context import in_context as experiment
    from attnaudit.gaussian.training import Recipe
    from attnaudit.report.gaussian_figures import recovery_figure

    task_numbers, few = whole_numbers(tasks, "--tasks"), whole_numbers(recovery_degrees, "--recovery-degrees")
    with at_work("training and recovering") as progress:
        findings = experiment(
            dim,
            theta,
            degrees,
            length,
            runs=runs,
            recipe=Recipe(steps=steps),
            task_numbers=task_numbers,
            recovery_dim=recovery_dim,
            recovery_degrees=few,
            repeats=repeats,
            seed=seed,
            progress=progress,
            device=work.device_name(device),
        )
    title = f"In context, d = {dim}, recovery at d = {recovery_dim}, seed {seed}"
    deliver("in-context", title, findings, lambda paths: recovery_figure(findings.records, paths), out, json, CLAIM)


@app.command()
def digits(
    ranks: Annotated[str, typer.Option(help="Ranks of the heads.")] = "1,2,3,5,7,10",
    length: Annotated[int, typer.Option(help="Softmax: tokens of a prompt.")] = 128,
    steps: Steps = 600,
    seed: options.Seed = 0,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Real data: heads trained on scikit-learn's digits against PCA, with the time of both.

    Examples:
        attnaudit gaussian digits
    """
    import torch

    from attnaudit.extras import optional
    from attnaudit.gaussian import AttentionPCA
    from attnaudit.gaussian.checks import check_length
    from attnaudit.gaussian.experiments.findings import Check, Findings
    from attnaudit.gaussian.experiments.real_data import against_pca
    from attnaudit.gaussian.training import Recipe
    from attnaudit.report.gaussian_figures import variance_figure
    from attnaudit.sources.matrices import digits as digit_rows

    check_length(length)
    chosen, rows = whole_numbers(ranks, "--ranks"), digit_rows()
    with at_work("training") as progress:
        found = against_pca(
            torch.tensor(rows), chosen, length=length, recipe=Recipe(steps=steps), seed=seed, progress=progress
        )
    rank = max(chosen)
    pca = optional("sklearn.decomposition", "sklearn", "Comparing with PCA").PCA(rank, svd_solver="full")
    expected, pca_time = _fit(pca, rows)
    explained, attention_time = _fit(AttentionPCA(rank, random_state=seed), rows)
    name = f"AttentionPCA({rank}): explained variance"
    comparison = Check(name, expected, explained, note="theory: scikit-learn's PCA")
    findings = Findings((*found.checks, comparison), (), found.records)
    deliver(
        "digits",
        f"Digits, {rows.shape[0]} x {rows.shape[1]}, seed {seed}",
        findings,
        lambda paths: variance_figure(findings.records, paths),
        out,
        json,
    )
    say(f"Time to fit {rank} components: scikit-learn's PCA {pca_time:.3f} s, AttentionPCA {attention_time:.3f} s.")


def _fit(estimator: Any, rows: Any) -> tuple[float, float]:
    """The share of variance an estimator explains, and the seconds it took."""
    begin = time.perf_counter()
    explained = float(estimator.fit(rows).explained_variance_ratio_.sum())
    return explained, time.perf_counter() - begin
