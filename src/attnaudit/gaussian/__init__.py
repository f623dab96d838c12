"""The Gaussian laboratory: attention-based PCA in closed form and trained (Maulen-Soto & Boyer 2026).

Read the modules in this order: `head` (the model), `risk` (every closed form), `landscape` (its critical points),
`softmax` (which has no closed form), `optimum`, `sampling` (finite data), `training`, `readout`, `experiments`.
"""

from __future__ import annotations

import importlib
from typing import Any

from attnaudit.gaussian.covariance import (
    harmonic_eigenvalues,
    principal_axes,
    random_covariance,
    second_moment,
    spiked_scale,
    wishart,
)
from attnaudit.gaussian.estimate import Estimate, estimate, simulated_risk
from attnaudit.gaussian.head import Kernel, attend, reconstruction_loss
from attnaudit.gaussian.landscape import CriticalPoint, critical_points
from attnaudit.gaussian.moments import gaussian_moments, wishart_moments
from attnaudit.gaussian.optimum import Optimum, optimum
from attnaudit.gaussian.readout import cosine, deflated, explained_variance_ratio, readout, squared_sine
from attnaudit.gaussian.risk import (
    Risk,
    finite_prompt,
    infinite_prompt,
    risk_in_context,
    risk_infinite,
    risk_linear,
)
from attnaudit.gaussian.sampling import pca_variance, sampling_inflation
from attnaudit.gaussian.softmax import SoftmaxProfile, held_out_concentration
from attnaudit.gaussian.spike import attention_overlap, bbp_overlap, pooled_overlap
from attnaudit.gaussian.tokens import GaussianTokens, ResampledTokens, SkewedTokens, TokenSource, WishartTokens
from attnaudit.gaussian.training import (
    HeadOptimiser,
    HeadRecipe,
    Trajectory,
    descend,
    minimise,
    minimise_on_data,
    random_start,
    train_on_fresh_losses,
    train_on_fresh_prompts,
)

__all__ = [
    "CriticalPoint",
    "Estimate",
    "GaussianTokens",
    "HeadOptimiser",
    "HeadRecipe",
    "Kernel",
    "Optimum",
    "ResampledTokens",
    "Risk",
    "SkewedTokens",
    "SoftmaxProfile",
    "TokenSource",
    "Trajectory",
    "WishartTokens",
    "attend",
    "attention_overlap",
    "bbp_overlap",
    "cosine",
    "critical_points",
    "deflated",
    "descend",
    "estimate",
    "explained_variance_ratio",
    "finite_prompt",
    "gaussian_moments",
    "harmonic_eigenvalues",
    "held_out_concentration",
    "infinite_prompt",
    "minimise",
    "minimise_on_data",
    "optimum",
    "pca_variance",
    "pooled_overlap",
    "principal_axes",
    "random_covariance",
    "random_start",
    "readout",
    "reconstruction_loss",
    "risk_in_context",
    "risk_infinite",
    "risk_linear",
    "sampling_inflation",
    "second_moment",
    "simulated_risk",
    "spiked_scale",
    "squared_sine",
    "train_on_fresh_losses",
    "train_on_fresh_prompts",
    "wishart",
    "wishart_moments",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is optional, and its base classes are needed to define this class.
    if name == "AttentionPCA":
        return importlib.import_module("attnaudit.gaussian.estimator").AttentionPCA
    raise AttributeError(f"module 'attnaudit.gaussian' has no attribute {name!r}")
