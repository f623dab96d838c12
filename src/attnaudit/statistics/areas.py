"""The area under a curve: how well do numbers tell positives from negatives?"""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.typing import ArrayLike


def area_under_precision_recall(positives: ArrayLike, scores: ArrayLike) -> float:
    """AUPR as the average precision Σ_k (R_k - R_{k-1}) P_k over falling scores; equal scores are one threshold."""
    truth, values = np.asarray(positives, dtype=bool), np.asarray(scores, dtype=np.float64)
    if not truth.any():
        return nan
    order = np.argsort(-values, kind="stable")
    values, hits = values[order], np.cumsum(truth[order])
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
    precision, recall = hits[ends] / (ends + 1), hits[ends] / hits[-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))
