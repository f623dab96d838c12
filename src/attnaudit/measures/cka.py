"""Centred kernel alignment between values and prediction (Kornblith et al. 2019).

CKA(X, Y) = HSIC(X, Y) / √(HSIC(X, X) HSIC(Y, Y)) with HSIC(X, Y) = tr(K H L H), K and L the Gram matrices of the rows
and H = I - 1_N. With N tokens not much larger than d the biased estimator is far above 0 for independent data; the
debiased one (Song et al. 2012) is 0 there on average.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead, Square
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Cost, Measure
from attnaudit.measures.measure_input import MeasureInput, OwnValues, PredictedValues
from attnaudit.numerics.products import product

Rows = Float[Tensor, "heads tokens dim"]


#: Centred rows or a Gram matrix of rows, and its HSIC with itself.
WithHSIC = tuple[Tensor, PerHead]


def centred_rows(rows: Rows) -> WithHSIC:
    """Rows less their mean."""
    x = rows - rows.mean(dim=1, keepdim=True)
    return x, _feature_hsic(x, x)


def gram_pair(rows: Rows) -> tuple[WithHSIC, WithHSIC]:
    """x_i·x_j without diagonal, and the radial Gram matrix, which are made from the same products."""
    products = product(rows, rows.mT)
    radial = radial_gram(products)
    products.diagonal(dim1=-2, dim2=-1).zero_()
    return (products, unbiased_hsic(products, products)), radial


def radial_gram(products: Square) -> WithHSIC:
    """Centred exp(-‖x_i - x_j‖²/2σ²), σ² the lower median of the non-zero squared distances, from x_i·x_j."""
    gram = _centred(_radial_basis(products))
    return gram, _gram_hsic(gram, gram)


def _centred(gram: Square) -> Square:
    """`kernel.gram.centred` in place: these matrices are many, and memory is slower than arithmetic."""
    means = gram.mean(dim=-1)
    return gram.sub_(means[:, :, None]).sub_((means - means.mean(dim=-1, keepdim=True))[:, None, :])


def _ratio(hsic: Callable[[Tensor, Tensor], Tensor], x: WithHSIC, y: WithHSIC, epsilon: float) -> PerHead:
    ratio = hsic(x[0], y[0]) / (x[1].sqrt() * y[1].sqrt() + epsilon)
    return ratio.masked_fill(_out_of_range(x[1]) | _out_of_range(y[1]), torch.nan)


def _out_of_range(hsic: PerHead) -> Bool[Tensor, "heads"]:
    """Whether a sum of fourth powers overflows, or is so small that it has lost digits; float32 stays as published."""
    if hsic.dtype != torch.float64:
        return torch.zeros_like(hsic, dtype=torch.bool)
    smallest = torch.finfo(hsic.dtype).tiny / torch.finfo(hsic.dtype).eps
    return ~hsic.isfinite() | ((hsic != 0) & (hsic.abs() < smallest))


def _feature_hsic(x: Rows, y: Rows) -> PerHead:
    return product(x.mT, y).square().sum(dim=(1, 2))


def _gram_hsic(k: Square, l: Square) -> PerHead:  # noqa: E741  (K and L are the literature's names)
    return (k.flatten(1)[:, None] @ l.flatten(1)[:, :, None])[:, 0, 0]


def unbiased_hsic(k: Square, l: Square) -> PerHead:  # noqa: E741
    """[tr(KL) + 1ᵀK1·1ᵀL1/((n-1)(n-2)) - 2·1ᵀKL1/(n-2)] / (n(n-3)) for matrices with zero diagonal."""
    n = k.shape[-1]
    rows_k, rows_l = k.sum(dim=-1), l.sum(dim=-1)
    trace = _gram_hsic(k, l)
    product_of_sums = rows_k.sum(dim=-1) * rows_l.sum(dim=-1) / ((n - 1) * (n - 2))
    return (trace + product_of_sums - 2 * (rows_k * rows_l).sum(dim=-1) / (n - 2)) / (n * (n - 3))


def _radial_basis(products: Square) -> Square:
    squares = products.diagonal(dim1=-2, dim2=-1)
    distances = (products * -2).add_(squares[:, :, None]).add_(squares[:, None, :]).clamp_min_(0)
    distances.diagonal(dim1=-2, dim2=-1).zero_()
    bandwidth = _median_distance(distances)
    return distances.mul_(-0.5 / bandwidth[:, None, None]).exp_()


def _median_distance(distances: Square) -> PerHead:
    """Lower median of the non-zero entries; a symmetric matrix needs one triangle only, which has the same one."""
    n = distances.shape[1]
    rows, columns = torch.triu_indices(n, n, offset=1, device=distances.device)
    upper = distances.flatten(1).index_select(1, rows * n + columns)
    if upper.shape[1] == 0:  # one token has no distance to another
        return distances.new_full((len(distances),), torch.nan)
    rank = (upper.shape[1] - 1) // 2
    if upper.is_cuda:
        medians = upper.median(dim=-1).values
    else:  # twice as fast as torch's
        medians = torch.from_numpy(np.partition(upper.numpy(), rank, axis=-1)[:, rank].copy())
    for head in (upper == 0).any(dim=-1).nonzero().flatten().tolist():  # tokens that are alike
        apart = upper[head][upper[head] != 0]
        medians[head] = apart.median() if len(apart) else torch.nan
    return medians


def _value_rows(values: OwnValues) -> WithHSIC:
    return centred_rows(values.value)


def _value_grams(values: OwnValues) -> tuple[WithHSIC, WithHSIC]:
    return gram_pair(values.value)


def _predicted_rows(predicted: PredictedValues) -> WithHSIC:
    return centred_rows(predicted.prediction.values)


def _predicted_grams(predicted: PredictedValues) -> tuple[WithHSIC, WithHSIC]:
    return gram_pair(predicted.prediction.values)


def linear_cka(at: MeasureInput) -> PerHead:
    """‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F) of the centred rows: the biased estimator in its d x d form."""
    value, predicted = at.values_as_predicted.shared(_value_rows), at.predicted.shared(_predicted_rows)
    return _ratio(_feature_hsic, value, predicted, at.epsilons.ratio)


def linear_cka_debiased(at: MeasureInput) -> PerHead:
    """Song et al.'s estimator on linear Gram matrices without diagonal; no epsilon under any protocol."""
    value, predicted = at.values_as_predicted.shared(_value_grams)[0], at.predicted.shared(_predicted_grams)[0]
    return _ratio(unbiased_hsic, value, predicted, 0.0)


def kernel_cka(at: MeasureInput) -> PerHead:
    """The biased estimator on radial-basis Gram matrices."""
    value, predicted = at.values_as_predicted.shared(_value_grams)[1], at.predicted.shared(_predicted_grams)[1]
    return _ratio(_gram_hsic, value, predicted, at.epsilons.ratio)


LINEAR_CKA = Measure(
    "linear_cka",
    "centred kernel alignment, linear, biased",
    linear_cka,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    every_reference=False,
)
LINEAR_CKA_DEBIASED = Measure(
    "linear_cka_debiased",
    "centred kernel alignment, linear, debiased: 0 for independent values",
    linear_cka_debiased,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    cost=Cost.PAIRS,
    every_reference=False,
    every_input=False,
)
KERNEL_CKA = Measure(
    "kernel_cka",
    "centred kernel alignment with a radial basis of median width, biased",
    kernel_cka,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    cost=Cost.PAIRS,
    every_reference=False,
    every_input=False,
)
