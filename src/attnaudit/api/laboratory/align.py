"""Do trained heads align with the leading eigenvector?"""

from __future__ import annotations

import logging
from pathlib import Path

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, path_of, timed
from attnaudit.claims.gaussian_alignment import CLAIM
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.experiments.align import align as align_heads
from attnaudit.gaussian.experiments.setting import covariance_for, recipe_for
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.report.gaussian_figures import align_figure

_log = logging.getLogger(__name__)


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
    sigma = covariance_for(dim, path_of(covariance), seed, device_name(device), default=20)
    recipe = recipe_for(steps, prompts, queries, rate, optimiser, length)
    _log.info(
        "Training 6 x %d heads of dimension %d on prompts of %d tokens, %d prompts per step.",
        *(runs, len(sigma), length, recipe.prompts),
    )
    with timed(progress, "training", out) as told:
        findings = align_heads(sigma, length, runs=runs, recipe=recipe, seed=seed, progress=told)
    theory = {check.quantity: check.theory for check in findings.checks}
    sizes = {kernel: theory[f"{kernel}: s = μᵀΣμ"] or 0.0 for kernel in ("linear", "softmax")}
    title = f"Alignment, d = {len(sigma)}, L = {length}, seed {seed}"
    return conclude("align", title, findings, lambda to: align_figure(findings.records, sizes, to), out, CLAIM)
