"""The risk on a plane, and at its critical points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, path_of, timed
from attnaudit.errors import UsageError
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.experiments.landscape import landscape as draw_landscape
from attnaudit.gaussian.experiments.setting import covariance_for
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.report.gaussian_figures import landscape_figure


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
    sigma = covariance_for(dim, path_of(covariance), seed, device_name(device), default=5)
    with timed(progress, "simulating", out) as told:
        findings = draw_landscape(sigma, length, (axes[0], axes[1]), seed=seed, progress=told)
    first, second = (rf"$\langle\mu, v_{{{axis}}}\rangle$" for axis in axes)
    title = f"Critical points, d = {len(sigma)}, L = {'∞' if length is None else length}, seed {seed}"
    return conclude(
        "landscape", title, findings, lambda to: landscape_figure(findings.records, (first, second), to), out
    )
