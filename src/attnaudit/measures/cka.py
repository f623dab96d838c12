"""Centred kernel alignment between values and prediction (Kornblith et al. 2019).

CKA(X, Y) = HSIC(X, Y) / √(HSIC(X, X) HSIC(Y, Y)) with HSIC(X, Y) = tr(K H L H), K and L the Gram matrices of the rows
and H = I - 1_N. With N tokens not much larger than d the biased estimator is far above 0 for independent data; the
debiased one (Song et al. 2012) is 0 there on average.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.gram import PerHead, Square, centred
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.guards import EXACT, Guards

Rows = Float[Tensor, "heads tokens dim"]


def alignment(heads: Heads, prediction: Prediction, guards: Guards = EXACT) -> dict[str, PerHead]:
    """Linear, debiased linear and radial-basis CKA."""
    value, predicted = heads.value.to(prediction.values.dtype), prediction.values
    return {
        "linear_cka": linear_cka(value, predicted, guards),
        "linear_cka_debiased": linear_cka_debiased(value, predicted),
        "kernel_cka": kernel_cka(value, predicted, guards),
    }


def linear_cka(x: Rows, y: Rows, guards: Guards = EXACT) -> PerHead:
    """‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F) of the centred rows: the biased estimator in its d x d form."""
    x, y = x - x.mean(dim=1, keepdim=True), y - y.mean(dim=1, keepdim=True)

    def hsic(a: Rows, b: Rows) -> PerHead:
        return (a.mT @ b).square().sum(dim=(1, 2))

    return _ratio(hsic, x, y, guards)


def kernel_cka(x: Rows, y: Rows, guards: Guards = EXACT) -> PerHead:
    """CKA of exp(-‖x_i - x_j‖²/2σ²), σ² the lower median of the non-zero squared distances of each matrix."""

    def hsic(a: Square, b: Square) -> PerHead:
        return (a * b).sum(dim=(1, 2))

    return _ratio(hsic, centred(_radial_basis(x)), centred(_radial_basis(y)), guards)


def linear_cka_debiased(x: Rows, y: Rows) -> PerHead:
    """CKA of the unbiased HSIC estimator (Song et al. 2012, eq. 5) on linear Gram matrices without diagonal."""
    return _ratio(unbiased_hsic, _hollow(x @ x.mT), _hollow(y @ y.mT), EXACT)


def unbiased_hsic(k: Square, l: Square) -> PerHead:  # noqa: E741  (K and L are the literature's names)
    """[tr(KL) + 1ᵀK1·1ᵀL1/((n-1)(n-2)) - 2·1ᵀKL1/(n-2)] / (n(n-3)) for matrices with zero diagonal."""
    n = k.shape[-1]
    rows_k, rows_l = k.sum(dim=-1), l.sum(dim=-1)
    trace = (k * l).sum(dim=(1, 2))
    product_of_sums = rows_k.sum(dim=-1) * rows_l.sum(dim=-1) / ((n - 1) * (n - 2))
    return (trace + product_of_sums - 2 * (rows_k * rows_l).sum(dim=-1) / (n - 2)) / (n * (n - 3))


def _ratio(hsic: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, guards: Guards) -> PerHead:
    return hsic(x, y) / (hsic(x, x).sqrt() * hsic(y, y).sqrt() + guards.ratio)


def _radial_basis(x: Rows) -> Square:
    squares = x.square().sum(dim=-1)
    distances = (squares[:, :, None] + squares[:, None, :] - 2 * x @ x.mT).clamp_min_(0)
    distances.diagonal(dim1=-2, dim2=-1).zero_()
    bandwidth = _median_distance(distances)
    return torch.exp(distances / (-2 * bandwidth[:, None, None]))


def _median_distance(distances: Square) -> PerHead:
    """Lower median of the non-zero entries; a symmetric matrix needs one triangle only, which has the same one."""
    rows, columns = torch.triu_indices(distances.shape[1], distances.shape[1], offset=1, device=distances.device)
    upper = distances[:, rows, columns]
    zeros = (upper == 0).sum(dim=-1)
    if not zeros.any():
        return upper.median(dim=-1).values
    return torch.stack([row[row != 0].median() if (row != 0).any() else row.new_tensor(torch.nan) for row in upper])


def _hollow(gram: Square) -> Square:
    gram = gram.clone()
    gram.diagonal(dim1=-2, dim2=-1).zero_()
    return gram
