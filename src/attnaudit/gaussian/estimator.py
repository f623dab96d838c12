"""PCA by training an attention head, with scikit-learn's interface."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from attnaudit.errors import UsageError
from attnaudit.extras import optional
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.covariance import principal_axes, second_moment
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.readout import readout
from attnaudit.gaussian.risk import infinite_prompt
from attnaudit.gaussian.tokens import ResampledTokens
from attnaudit.gaussian.training import Recipe, minimise, random_start, train_on_fresh_prompts

_PURPOSE = "AttentionPCA"
_base: Any = optional("sklearn.base", "sklearn", _PURPOSE)
_validation: Any = optional("sklearn.utils.validation", "sklearn", _PURPOSE)
_utils: Any = optional("sklearn.utils", "sklearn", _PURPOSE)
_exceptions: Any = optional("sklearn.exceptions", "sklearn", _PURPOSE)

Rows = NDArray[np.float64]
#: Of the gradient, for data scaled to a covariance of norm 1; explained variance is off by about its square.
_TOLERANCE = 1e-3


class AttentionPCA(
    _base.ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    _base.TransformerMixin,  # type: ignore[misc]
    _base.BaseEstimator,  # type: ignore[misc]
):
    """The principal components an attention head of rank k finds when it is trained to rebuild its tokens.

    `linear` treats the whole data set as one prompt and finds its principal subspace to rounding. `softmax` is trained
    on prompts drawn from the rows; its subspace is that of PCA for Gaussian data, and is off for skewed data.

    A head finds a subspace, not its axes: the components are the axes of the data's variance inside the span of ŜW.
    Plain PCA takes milliseconds where this takes seconds. What is interesting here is that it works, not its speed.

    Args:
        n_components: how many; all if None.
        kernel: `"linear"` or `"softmax"`.
        length: softmax: tokens of a prompt.
        steps: softmax: steps of training.
        random_state: of the start and the prompts.
    """

    # scikit-learn's contract: the constructor takes anything, and `fit` refuses what makes no sense.
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
        scale = float(moment.norm()) or 1.0  # constant data: nothing to scale, and nothing to find
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
        """Coordinates on the components."""
        _validation.check_is_fitted(self)
        rows = _validation.validate_data(self, X, dtype=np.float64, reset=False)
        scores: Rows = (rows - self.mean_) @ self.components_.T
        return scores

    def inverse_transform(self, X: Any) -> Rows:
        """From coordinates back to rows."""
        _validation.check_is_fitted(self)
        scores = _utils.check_array(X, dtype=np.float64)
        rows: Rows = scores @ self.components_ + self.mean_
        return rows

    def _checked(self, rows: Tensor) -> tuple[Kernel, int]:
        if self.kernel not in tuple(Kernel):
            raise UsageError(f"There is no kernel {self.kernel!r}; there are {' and '.join(Kernel)}.")
        for name in ("n_components", "length", "steps"):
            number = getattr(self, name)
            if not (name == "n_components" and number is None) and not _is_whole(number):
                raise UsageError(f"{name} is {number!r}, but must be a whole number.")
        most = min(rows.shape)
        rank = most if self.n_components is None else self.n_components
        if not 1 <= rank <= most:
            raise UsageError(f"n_components is {rank}, but {tuple(rows.shape)} data has between 1 and {most}.")
        check_length(int(self.length))
        return Kernel(self.kernel), int(rank)

    def _train(self, kernel: Kernel, rows: Tensor, moment: Tensor, rank: int, generator: Generator) -> Tensor:
        start = random_start(moment + 1e-12 * torch.eye(len(moment), dtype=moment.dtype), rank, generator, 0.5 / rank)
        if kernel is Kernel.SOFTMAX:
            recipe = Recipe(steps=self.steps)
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
    """Each component with its largest entry positive, so that signs do not depend on the start."""
    largest = components.gather(1, components.abs().argmax(dim=1, keepdim=True))
    return components * torch.where(largest < 0, -1.0, 1.0)


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)
