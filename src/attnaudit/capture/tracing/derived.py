"""Labels of results that have other axes than their operand: of means, look-ups and layers of eight bits.

What these make of a tensor keeps apart what belongs to other inputs, and without labels nobody could tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Changed, Fact, Product, Weights
from attnaudit.capture.tracing.labels import Labels, LastingMove, along, lost, varies
from attnaudit.capture.tracing.operations import TorchOp
from attnaudit.capture.tracing.products import lookup_labels

_REDUCTIONS = frozenset((
    "mean", "sum", "amax", "amin", "max", "min", "median", "prod", "std", "var", "norm", "linalg_vector_norm",
    "logsumexp",
))  # fmt: skip
#: Linear layers of which the weights cannot be seen.
_OF_EIGHT_BITS = frozenset((
    "linear", "linear_relu", "linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16", "linear_relu_dynamic_fp16",
))  # fmt: skip


def deciding(operation: TorchOp, args: Sequence[Any]) -> Tensor | None:
    """The operand that labels follow from: the places in a table of which rows are looked up, else the first."""
    own = None
    if operation.name in _REDUCTIONS or operation.name in _OF_EIGHT_BITS:
        own = args[0]
    elif operation.name == "index":
        own = args[1][0] if len(args[1]) == 1 else None
    elif operation.name == "index_select":
        own = args[2] if args[1] == 0 else None
    return own if isinstance(own, Tensor) and own.dtype != torch.bool else None


def derived(
    operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], fact: Fact, made: Tensor
) -> Labels | None:
    """The labels of a result, with what is known of the operand that they follow from; None if others say more."""
    if fact.labels is None or _is_of_scores(fact):
        return None
    if operation.name in _OF_EIGHT_BITS:
        return _projected(fact.labels, made.shape)
    if operation.name in _REDUCTIONS:
        axes = _lost_axes(operation, args, kwargs)
        return fact.labels.moved(_Reduced(axes)) if axes and made.dim() == args[0].dim() - len(axes) else None
    places = deciding(operation, args)
    is_row = places is not None and made.dim() == places.dim() + 1
    return lookup_labels(fact.labels, made.shape) if is_row else None


def _is_of_scores(fact: Fact) -> bool:
    """Whether a tensor is of scores or weights, of which other rules say what they become."""
    form = fact.form
    return isinstance(form, Weights | Changed) or (isinstance(form, Product) and (form.content or form.mixes))


def _lost_axes(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The axes that a reduction runs over, from the last to the first."""
    names = [argument.name for argument in operation.func._schema.arguments]
    axes = {**dict(zip(names, args, strict=False)), **kwargs}.get("dim")
    axes = [axes] if isinstance(axes, int) else axes or []
    return tuple(sorted((axis % args[0].dim() for axis in axes), reverse=True))


@dataclass(frozen=True, slots=True)
class _Reduced(LastingMove):
    """Axes along which nothing varies are left out."""

    axes: tuple[int, ...]

    def __call__(self, label: Tensor) -> Tensor:
        """The label of what is left."""
        for axis in self.axes:
            if varies(label, axis):
                raise ValueError("it varies along an axis that is left out")
            label = label.select(axis, 0)
        return label


def _projected(given: Labels, shape: torch.Size) -> Labels:
    """Of a linear layer whose weights cannot be seen, (*places, width)."""

    def make(name: str) -> Tensor | None:
        last = len(shape) - 1
        if name == "column":
            return along(shape, {last: shape[last]}, shape[last])
        if name == "row":
            return along(shape, dict(enumerate(shape[:last])), math.prod(shape[:last]))
        label = given.get(name) if name in ("sample", "token") else None
        if label is None:
            return None
        return lost(name, shape) if varies(label, -1) else label.narrow(-1, 0, 1).expand(shape)

    return given.leading_to(("projection", shape), make)
