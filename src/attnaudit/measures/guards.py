"""Why a head has no number: what measures need of a head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from attnaudit.measures.measure_input import MeasureInput


@dataclass(frozen=True)
class Guard:
    """What a measure needs of a head, in a word or two, and why a head of a batch does not have it (None if it does).

    The reasons explain missing numbers; they never remove one. That is what `usable` is for: heads that lack what is
    needed have no number, even if the function returns one.
    """

    text: str
    problems: Callable[[Any], Sequence[str | None]]
    usable: Callable[[Any], Bool[Tensor, "heads"]] | None = None


def _none(at: MeasureInput) -> Sequence[str | None]:
    return (None,) * len(at.heads)


def _of_keys(at: MeasureInput) -> Sequence[str | None]:
    return at.keys.problems


def _of_prediction(at: MeasureInput) -> Sequence[str | None]:
    return at.prediction.problems


def _has_eigenvalues(at: MeasureInput) -> Bool[Tensor, "heads"]:
    return at.keys.spectrum.scaled_eigenvalues.isfinite().all(dim=-1)


def _has_eigenvectors(at: MeasureInput) -> Bool[Tensor, "heads"]:
    return _has_eigenvalues(at) & (at.kernel_rank > 0)


def _has_visible_kernel(at: MeasureInput) -> Bool[Tensor, "heads"]:
    return _has_eigenvectors(at) & (torch.exp(at.keys.spectrum.log_scale) > 0)


def _of_visible_kernel(at: MeasureInput) -> Sequence[str | None]:
    visible = (torch.exp(at.keys.spectrum.log_scale) > 0).tolist()
    return [
        problem or (None if above else "its kernel is so small that it underflows")
        for problem, above in zip(at.keys.problems, visible, strict=True)
    ]


def _has_prediction(at: MeasureInput) -> Bool[Tensor, "heads"]:
    return at.predicted.complete


ANY_HEAD = Guard("any head", _none)
EIGENPAIRS = Guard("eigenpairs", _of_keys, _has_eigenvalues)
#: For measures of eigenvectors, which a kernel that is zero does not have.
EIGENVECTORS = Guard("eigenvectors", _of_keys, _has_eigenvectors)
#: For ratios of entries of K̃ at its own scale, where zeros would look like perfect agreement.
VISIBLE_KERNEL = Guard("a kernel above 0", _of_visible_kernel, _has_visible_kernel)
PREDICTED = Guard("prediction", _of_prediction, _has_prediction)
