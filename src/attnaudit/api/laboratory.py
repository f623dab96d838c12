"""The experiments of the Gaussian laboratory: theory beside measurement, with verdicts, figure and data."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from attnaudit import defaults
from attnaudit.claims import Claim
from attnaudit.claims.gaussian_alignment import CLAIM as ALIGNMENT
from attnaudit.claims.gaussian_finite_prompt import CLAIM as FINITE_PROMPT
from attnaudit.claims.gaussian_in_context import CLAIM as IN_CONTEXT
from attnaudit.claims.gaussian_regulariser import CLAIM as REGULARISER
from attnaudit.claims.jury import Judgement, judge
from attnaudit.errors import MissingExtraError, UsageError
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.experiments.align import align as align_heads
from attnaudit.gaussian.experiments.findings import Findings
from attnaudit.gaussian.experiments.finite_prompt import finite_prompt_error
from attnaudit.gaussian.experiments.fits import compare_fits
from attnaudit.gaussian.experiments.in_context import in_context as train_over_tasks
from attnaudit.gaussian.experiments.landscape import landscape as draw_landscape
from attnaudit.gaussian.experiments.real_data import against_pca
from attnaudit.gaussian.experiments.regularise import regularise as regularise_heads
from attnaudit.gaussian.experiments.setting import covariance_for, recipe_for
from attnaudit.gaussian.training import HeadRecipe
from attnaudit.numerics.devices import device_name
from attnaudit.numerics.threads import torch_threads
from attnaudit.records.engine import Progress
from attnaudit.records.files import make_folder
from attnaudit.records.ranges import check_whole
from attnaudit.report.data_files import write_parquet, write_rows
from attnaudit.report.drawing import for_screen_and_print
from attnaudit.report.gaussian import check_rows
from attnaudit.report.gaussian_figures import (
    align_figure,
    error_figure,
    landscape_figure,
    recovery_figure,
    regulariser_figure,
    variance_figure,
)
from attnaudit.report.progress import shown_progress
from attnaudit.sources.matrices import digits as digit_rows

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """What an experiment found, what that says of its claim, and the files it wrote."""

    title: str
    findings: Findings
    judgement: Judgement
    files: tuple[Path, ...]


def align(
    dim: int | None = None,
    covariance: str | Path | None = None,
    *,
    length: int = 32,
    runs: int = 4,
    steps: int = 600,
    prompts: int | None = None,
    queries: int = 16,
    rate: float = 0.05,
    optimiser: str = "adam",
    seed: int = defaults.SEED,
    device: str = "cpu",
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Train both kernels on Gaussian, isotropic and skewed tokens, and judge whether they align with v₁.

    Args:
        dim: dimension of a covariance with eigenvalues 1, 1/2, 1/3, … and random eigenvectors; 20 if None.
        covariance: a covariance of your own instead: .npy or .csv.
        length: tokens per prompt.
        runs: independent training runs per head.
        steps: training steps per run.
        prompts: fresh prompts per step; 64, more if they are short, if None.
        queries: queries per prompt.
        rate: initial learning rate; it falls to 0 along a cosine.
        optimiser: `adam` or `sgd`.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    check_length(length)
    sigma = covariance_for(dim, _path(covariance), seed, device_name(device), default=20)
    recipe = recipe_for(steps, prompts, queries, rate, optimiser, length)
    _log.info(
        "Training 6 x %d heads of dimension %d on prompts of %d tokens, %d prompts per step.",
        *(runs, len(sigma), length, recipe.prompts),
    )
    with _timed(progress, "training") as told:
        findings = align_heads(sigma, length, runs=runs, recipe=recipe, seed=seed, progress=told)
    theory = {check.quantity: check.theory for check in findings.checks}
    sizes = {kernel: theory[f"{kernel}: s = μᵀΣμ"] or 0.0 for kernel in ("linear", "softmax")}
    title = f"Alignment, d = {len(sigma)}, L = {length}, seed {seed}"
    return _conclude("align", title, findings, lambda to: align_figure(findings.records, sizes, to), out, ALIGNMENT)


def regularise(
    dim: int | None = None,
    covariance: str | Path | None = None,
    *,
    strengths: Sequence[float] = (0.1, 1.0, 10.0),
    length: int = 32,
    runs: int = 8,
    steps: int = 600,
    rate: float = 0.05,
    optimiser: str = "adam",
    seed: int = defaults.SEED,
    device: str = "cpu",
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Train heads with and without a PCA-like regulariser, and judge whether it speeds convergence to v₁ up.

    Args:
        dim: dimension of a covariance with eigenvalues 1, 1/2, 1/3, … and random eigenvectors; 20 if None.
        covariance: a covariance of your own instead: .npy or .csv.
        strengths: values of γ, beside 0.
        length: tokens per prompt.
        runs: pairs of runs per head and strength.
        steps: training steps per run.
        rate: initial learning rate; it falls to 0 along a cosine.
        optimiser: `adam` or `sgd`.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    check_length(length)
    check_whole(2, runs=runs)
    sigma = covariance_for(dim, _path(covariance), seed, device_name(device), default=20)
    recipe = recipe_for(steps, None, 16, rate, optimiser, length)
    with _timed(progress, "training") as told:
        findings = regularise_heads(
            sigma, length, strengths=strengths, runs=runs, recipe=recipe, seed=seed, progress=told
        )
    title = f"Regulariser, d = {len(sigma)}, L = {length}, {runs} runs, seed {seed}"
    return _conclude(
        "regularise", title, findings, lambda to: regulariser_figure(findings.records, to), out, REGULARISER
    )


def landscape(
    dim: int | None = None,
    covariance: str | Path | None = None,
    *,
    length: int | None = None,
    axes: Sequence[int] = (1, 2),
    seed: int = defaults.SEED,
    device: str = "cpu",
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Draw the risk on the plane of two eigenvectors, and check the risk at its critical points by simulation.

    Args:
        dim: dimension of a covariance with eigenvalues 1, 1/2, 1/3, … and random eigenvectors; 5 if None.
        covariance: a covariance of your own instead: .npy or .csv.
        length: tokens per prompt; infinitely many if None.
        axes: numbers of the two eigenvectors that span the plane.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    if length is not None:
        check_length(length)
    if len(axes) != 2:
        raise UsageError(f"--axes must be two numbers, such as 1,2, got {','.join(map(str, axes))}.")
    sigma = covariance_for(dim, _path(covariance), seed, device_name(device), default=5)
    with _timed(progress, "simulating") as told:
        findings = draw_landscape(sigma, length, (axes[0], axes[1]), seed=seed, progress=told)
    first, second = (rf"$\langle\mu, v_{{{axis}}}\rangle$" for axis in axes)
    title = f"Critical points, d = {len(sigma)}, L = {'∞' if length is None else length}, seed {seed}"
    return _conclude(
        "landscape", title, findings, lambda to: landscape_figure(findings.records, (first, second), to), out
    )


def finite_prompt(
    dim: int | None = None,
    covariance: str | Path | None = None,
    *,
    lengths: Sequence[int] = (64, 256, 1024, 4096),
    repeats: int = 200,
    prompts: int = 2000,
    prompt_length: int = 64,
    seed: int = defaults.SEED,
    device: str = "cpu",
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Measure how the error of the direction falls with data, against Λ/L and κ_LΛ/N.

    Args:
        dim: dimension of a covariance with eigenvalues 1, 1/2, 1/3, … and random eigenvectors; 10 if None.
        covariance: a covariance of your own instead: .npy or .csv.
        lengths: tokens of a single prompt.
        repeats: single prompts of each length; of data sets of many prompts a tenth.
        prompts: prompts in a data set of many.
        prompt_length: tokens per prompt in a data set of many.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    sigma = covariance_for(dim, _path(covariance), seed, device_name(device), default=10)
    with _timed(progress, "fitting data sets") as told:
        findings = finite_prompt_error(
            sigma,
            lengths,
            repeats=repeats,
            prompts=prompts,
            prompt_length=prompt_length,
            seed=seed,
            progress=told,
        )
    title = f"Finite data, d = {len(sigma)}, seed {seed}"
    return _conclude(
        "finite-prompt", title, findings, lambda to: error_figure(findings.records, to), out, FINITE_PROMPT
    )


def in_context(
    dim: int = 20,
    *,
    theta: float = 2.0,
    degrees: int = 20,
    length: int = 64,
    runs: int = 4,
    steps: int = 600,
    tasks: Sequence[int] = (1, 4, 16),
    recovery_degrees: Sequence[int] = (50, 200),
    recovery_dim: int = 100,
    repeats: int = 8,
    seed: int = defaults.SEED,
    device: str = "cpu",
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Train heads over tasks with spiked Wishart covariances; then recover the spike from few, beside the BBP curve.

    Args:
        dim: training: dimension.
        theta: training: θ of the spike V = I + θvvᵀ.
        degrees: training: n of Σ ~ Wishart(V, n).
        length: training: tokens per prompt.
        runs: independent training runs per head.
        steps: training steps per run.
        tasks: recovery: numbers of tasks K.
        recovery_degrees: recovery: values of n.
        recovery_dim: recovery: dimension.
        repeats: recovery: repetitions per setting.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    with _timed(progress, "training and recovering") as told:
        findings = train_over_tasks(
            dim,
            theta,
            degrees,
            length,
            runs=runs,
            recipe=HeadRecipe(steps=steps),
            task_numbers=tasks,
            recovery_dim=recovery_dim,
            recovery_degrees=recovery_degrees,
            repeats=repeats,
            seed=seed,
            progress=told,
            device=device_name(device),
        )
    title = f"In context, d = {dim}, recovery at d = {recovery_dim}, seed {seed}"
    return _conclude("in-context", title, findings, lambda to: recovery_figure(findings.records, to), out, IN_CONTEXT)


def digits(
    *,
    ranks: Sequence[int] = (1, 2, 3, 5, 7, 10),
    length: int = 128,
    steps: int = 600,
    seed: int = defaults.SEED,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Experiment:
    """Compare heads trained on scikit-learn's digits with PCA, and the time both take.

    Args:
        ranks: ranks of the heads.
        length: tokens per prompt, for the softmax head.
        steps: training steps.
        seed: of every random choice.
        out: the folder for figure and data, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    check_length(length)
    rows = digit_rows()
    with _timed(progress, "training") as told:
        found = against_pca(
            torch.tensor(rows), ranks, length=length, recipe=HeadRecipe(steps=steps), seed=seed, progress=told
        )
    fits = compare_fits(rows, max(ranks), seed)
    findings = Findings((*found.checks, fits.check), (), found.records)
    title = f"Digits, {rows.shape[0]} x {rows.shape[1]}, seed {seed}"
    experiment = _conclude("digits", title, findings, lambda to: variance_figure(findings.records, to), out)
    _log.info(
        "Time to fit %d components: scikit-learn's PCA %.3f s, AttentionPCA %.3f s.",
        *(max(ranks), fits.pca_seconds, fits.attention_seconds),
    )
    return experiment


def _path(place: str | Path | None) -> Path | None:
    return None if place is None else Path(place)


@contextmanager
def _timed(progress: Progress | bool, label: str) -> Iterator[Callable[[int, int], None]]:
    """Tell of progress and then of the time taken: as messages, so that the results are the same every time.

    Runs on one CPU thread: such small products are slower on several, and their last digits depend on the number.
    """
    begin = time.perf_counter()
    with shown_progress(progress, label) as told, torch_threads(1):
        yield lambda done, total: told(done, total, label)
    _log.info("Took %.1f s.", time.perf_counter() - begin)


def _conclude(
    name: str,
    title: str,
    findings: Findings,
    draw: Callable[[Sequence[Path]], None],
    out: str | Path | None,
    claim: Claim | None = None,
) -> Experiment:
    """Judge the claim, and write data, table and, if matplotlib is installed, the figure."""
    folder = Path(out) if out is not None else Path(defaults.RUNS) / f"gaussian-{name}"
    make_folder(folder)
    figures, data, table = for_screen_and_print(folder, name), folder / f"{name}.parquet", folder / f"{name}.csv"
    write_parquet(findings.records, data)
    write_rows(check_rows(findings.checks), table)
    judgement = judge([] if claim is None else [claim], findings.trials)
    files: tuple[Path, ...] = (data, table)
    try:
        draw(figures)
        files = (*figures, *files)
    except MissingExtraError as error:
        _log.warning("The figure is not drawn: %s", error)
    _log.info("Wrote %s.", ", ".join(map(str, files)))
    return Experiment(title, findings, judgement, files)
