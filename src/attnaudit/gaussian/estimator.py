"""PCA by training an attention head, with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from attnaudit.errors import UsageError, unknown
from attnaudit.extras import optional
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.covariance import principal_axes, second_moment
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.readout import readout
from attnaudit.gaussian.risk import infinite_prompt
from attnaudit.gaussian.tokens import ResampledTokens
from attnaudit.gaussian.training import HeadRecipe, minimise, random_start, train_on_fresh_prompts

_PURPOSE = "AttentionPCA"
_base: Any = optional("sklearn.base", "sklearn", _PURPOSE)
_validation: Any = optional("sklearn.utils.validation", "sklearn", _PURPOSE)
_utils: Any = optional("sklearn.utils", "sklearn", _PURPOSE)
_exceptions: Any = optional("sklearn.exceptions", "sklearn", _PURPOSE)

Rows = NDArray[np.float64]
#: Tolerance of the gradient, for a covariance of norm 1; the error of the explained variance is about its square.
_TOLERANCE = 1e-3


class AttentionPCA(
    _base.ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    _base.TransformerMixin,  # type: ignore[misc]
    _base.BaseEstimator,  # type: ignore[misc]
):
    """The principal components found by an attention head of rank k that is trained to reconstruct its tokens.

    `linear` treats the whole data set as one prompt and finds its principal subspace up to rounding error. `softmax` is
    trained on prompts drawn from the rows; its subspace is that of PCA for Gaussian data, but not for skewed data.

    A head finds a subspace, not its axes: the components are the principal axes of the data within the span of ŜW.
    Ordinary PCA takes milliseconds where this takes seconds: the point is that it works, not its speed.

    Args:
        n_components: number of components; all if None.
        kernel: `"linear"` or `"softmax"`.
        length: tokens per prompt, for softmax.
        steps: training steps, for softmax.
        random_state: seed of the initial weights and the prompts.
    """

    # scikit-learn's convention: the constructor stores its arguments, and `fit` validates them.
    def __init__(
        self,
        n_components: Any = None,
        kernel: Any = "linear",
        *,
        length: Any = 128,
        steps: Any = 600,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.length = length
        self.steps = steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> AttentionPCA:
        """Train the head on the centred rows of X."""
        rows = torch.tensor(_validation.validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        kernel, rank = self._checked(rows)
        mean = rows.mean(dim=0)
        rows = rows - mean
        moment = second_moment(rows)
        scale = float(moment.norm()) or 1.0  # constant data has norm 0
        seed = int(_utils.check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        weights = self._train(kernel, rows / scale**0.5, moment / scale, rank, Generator().manual_seed(seed))
        basis, _ = torch.linalg.qr(readout(weights, moment / scale))
        covariance = moment * len(rows) / (len(rows) - 1)
        variances, axes = principal_axes(basis.mT @ covariance @ basis)
        components = _signed((basis @ axes).mT)
        self.mean_ = mean.numpy()
        self.components_ = components.numpy()
        self.explained_variance_ = variances.clamp_min(0).numpy()
        total = float(covariance.trace())
        self.explained_variance_ratio_ = self.explained_variance_ / total if total else np.full(rank, np.nan)
        self.n_components_ = rank
        return self

    def transform(self, X: Any) -> Rows:
        """The coordinates along the components."""
        _validation.check_is_fitted(self)
        rows = _validation.validate_data(self, X, dtype=np.float64, reset=False)
        scores: Rows = (rows - self.mean_) @ self.components_.T
        return scores

    def inverse_transform(self, X: Any) -> Rows:
        """The rows with these coordinates."""
        _validation.check_is_fitted(self)
        scores = _utils.check_array(X, dtype=np.float64)
        rows: Rows = scores @ self.components_ + self.mean_
        return rows

    def _checked(self, rows: Tensor) -> tuple[Kernel, int]:
        if self.kernel not in tuple(Kernel):
            raise unknown("kernel", self.kernel, Kernel)
        for name in ("n_components", "length", "steps"):
            number = getattr(self, name)
            if not (name == "n_components" and number is None) and not _is_whole(number):
                raise UsageError(f"{name} must be an integer, got {number!r}.")
        most = min(rows.shape)
        rank = most if self.n_components is None else self.n_components
        if not 1 <= rank <= most:
            raise UsageError(
                f"n_components must be between 1 and {most} for data of shape {tuple(rows.shape)}, got {rank}."
            )
        check_length(int(self.length))
        return Kernel(self.kernel), int(rank)

    def _train(self, kernel: Kernel, rows: Tensor, moment: Tensor, rank: int, generator: Generator) -> Tensor:
        start = random_start(moment + 1e-12 * torch.eye(len(moment), dtype=moment.dtype), rank, generator, 0.5 / rank)
        if kernel is Kernel.SOFTMAX:
            recipe = HeadRecipe(steps=self.steps)
            source = ResampledTokens(rows)
            return train_on_fresh_prompts(kernel, source, self.length, start, generator, recipe).end
        risk = infinite_prompt()
        weights = minimise(lambda weights: risk(weights, moment), start)
        slope = float(risk.gradient(weights, moment).norm())
        if slope > _TOLERANCE:
            warnings.warn(
                f"The head is not fully trained: its gradient is {slope:.1e}.",
                _exceptions.ConvergenceWarning,
                stacklevel=3,
            )
        return weights

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def _signed(components: Tensor) -> Tensor:
    """Each component with its largest entry positive, so that signs do not depend on the initial weights."""
    largest = components.gather(1, components.abs().argmax(dim=1, keepdim=True))
    return components * torch.where(largest < 0, -1.0, 1.0)


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)
