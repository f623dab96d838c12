"""AttentionPCA beside scikit-learn's PCA as a user calls them: the variance they explain, and the time they take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnaudit.extras import optional
from attnaudit.gaussian.estimator import AttentionPCA
from attnaudit.gaussian.experiments.findings import TheoryCheck


@dataclass(frozen=True)
class FitComparison:
    """The explained variance of both as a check, and the seconds of each fit."""

    check: TheoryCheck
    pca_seconds: float
    attention_seconds: float


def compare_fits(rows: NDArray[np.float64], rank: int, seed: int) -> FitComparison:
    """Fit both to the same rows."""
    pca = optional("sklearn.decomposition", "sklearn", "Comparing with PCA").PCA(rank, svd_solver="full")
    expected, pca_seconds = _fit(pca, rows)
    explained, attention_seconds = _fit(AttentionPCA(rank, random_state=seed), rows)
    name = f"AttentionPCA({rank}): explained variance"
    check = TheoryCheck(name, expected, explained, note="theory: scikit-learn's PCA")
    return FitComparison(check, pca_seconds, attention_seconds)


def _fit(estimator: Any, rows: NDArray[np.float64]) -> tuple[float, float]:
    """The share of variance that an estimator explains, and the seconds its fit took."""
    begin = time.perf_counter()
    explained = float(estimator.fit(rows).explained_variance_ratio_.sum())
    return explained, time.perf_counter() - begin
