"""Heads on handwritten digits, beside PCA."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from attnaudit import defaults
from attnaudit.api.laboratory.experiment import Experiment, conclude, timed
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.experiments.findings import Findings
from attnaudit.gaussian.experiments.fits import compare_fits
from attnaudit.gaussian.experiments.real_data import against_pca
from attnaudit.gaussian.training import HeadRecipe
from attnaudit.records.engine import Progress
from attnaudit.report.gaussian_figures import variance_figure
from attnaudit.sources.matrices import digits as digit_rows

_log = logging.getLogger(__name__)


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
    with timed(progress, "training", out) as told:
        found = against_pca(
            torch.tensor(rows), ranks, length=length, recipe=HeadRecipe(steps=steps), seed=seed, progress=told
        )
    fits = compare_fits(rows, max(ranks), seed)
    findings = Findings((*found.checks, fits.check), (), found.records)
    title = f"Digits, {rows.shape[0]} x {rows.shape[1]}, seed {seed}"
    experiment = conclude("digits", title, findings, lambda to: variance_figure(findings.records, to), out)
    _log.info(
        "Time to fit %d components: scikit-learn's PCA %.3f s, AttentionPCA %.3f s.",
        *(max(ranks), fits.pca_seconds, fits.attention_seconds),
    )
    return experiment
