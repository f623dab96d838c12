"""How the error falls with data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, path_of, timed
from attnaudit.claims.gaussian_finite_prompt import CLAIM
from attnaudit.gaussian.experiments.finite_prompt import finite_prompt_error
from attnaudit.gaussian.experiments.setting import covariance_for
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.report.gaussian_figures import error_figure


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
    sigma = covariance_for(dim, path_of(covariance), seed, device_name(device), default=10)
    with timed(progress, "fitting data sets", out) as told:
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
    return conclude("finite-prompt", title, findings, lambda to: error_figure(findings.records, to), out, CLAIM)
