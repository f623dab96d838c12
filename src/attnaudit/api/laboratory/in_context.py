"""Heads that are trained over tasks, and the spike recovered from few."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, timed
from attnaudit.claims.gaussian_in_context import CLAIM
from attnaudit.gaussian.experiments.in_context import in_context as train_over_tasks
from attnaudit.gaussian.training import HeadRecipe
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.report.gaussian_figures import recovery_figure


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
    with timed(progress, "training and recovering", out) as told:
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
    return conclude("in-context", title, findings, lambda to: recovery_figure(findings.records, to), out, CLAIM)
