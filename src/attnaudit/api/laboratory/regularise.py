"""Does a PCA-like regulariser speed convergence up?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, path_of, timed
from attnaudit.claims.gaussian_regulariser import CLAIM
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.experiments.regularise import check_strengths
from attnaudit.gaussian.experiments.regularise import regularise as regularise_heads
from attnaudit.gaussian.experiments.setting import covariance_for, recipe_for
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.records.ranges import check_whole
from attnaudit.report.gaussian_figures import regulariser_figure


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
    check_strengths(strengths)
    sigma = covariance_for(dim, path_of(covariance), seed, device_name(device), default=20)
    recipe = recipe_for(steps, None, 16, rate, optimiser, length)
    with timed(progress, "training", out) as told:
        findings = regularise_heads(
            sigma, length, strengths=strengths, runs=runs, recipe=recipe, seed=seed, progress=told
        )
    title = f"Regulariser, d = {len(sigma)}, L = {length}, {runs} runs, seed {seed}"
    return conclude("regularise", title, findings, lambda to: regulariser_figure(findings.records, to), out, CLAIM)
