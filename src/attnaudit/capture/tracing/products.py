"""Matrix products, whatever function computes them, as left (batch, m, d) times right (batch, d, n)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Fact, Product, Written
from attnaudit.capture.tracing.labels import Labels, LastingMove, Move, along, lost, varies
from attnaudit.capture.tracing.lazy import Lazy


@dataclass(frozen=True, slots=True)
class Batched(LastingMove):
    """Makes a matrix, or a batch of them, a batch; or, with `vector`, a vector."""

    vector: bool = False

    def __call__(self, tensor: Tensor) -> Tensor:
        """The batch."""
        if self.vector:
            return tensor[None, :, None]
        return tensor if tensor.dim() == 3 else tensor.unsqueeze(0)


@dataclass(frozen=True, slots=True)
class Factors:
    """alpha·left @ right + beta·bias, operands as the model has them; with `vector`, `right` is one."""

    left: Tensor
    right: Tensor
    bias: Tensor | None = None
    alpha: float = 1.0
    beta: float = 1.0
    vector: bool = False

    @property
    def left_batched(self) -> Move:
        """Makes the left operand, or a label of its shape, (batch, m, d)."""
        return Batched()

    @property
    def right_batched(self) -> Move:
        """Makes the right operand, or a label of its shape, (batch, d, n)."""
        return Batched(self.vector)

    @property
    def adds(self) -> bool:
        """Whether anything is added to the product."""
        return self.bias is not None and self.beta != 0 and bool((self.bias != 0).any())

    def product(self, left: Fact | None, right: Fact | None) -> Product:
        """What is known of the result, with the facts of the operands."""
        bias, beta = self.bias, self.beta
        term = None if bias is None or beta == 0 else Lazy(lambda: bias if beta == 1 else bias * beta)
        both = left is not None and right is not None and right.activation  # learned queries are computed, too
        mixes = both and not (_sums_features(left, -1) and _sums_features(right, -1 if self.vector else -2))
        return Product(
            self.left_batched(self.left),
            self.right_batched(self.right),
            None if left is None else left.moved(self.left_batched, self.left.shape),
            None if right is None else right.moved(self.right_batched, self.right.shape),
            content=both and not mixes,
            mixes=mixes,
            scale=self.alpha,
            bias=term,
            written=Written.now(self.left),
        )


def _sums_features(fact: Fact | None, axis: int) -> bool:
    """Whether an axis runs over the columns of a projection, as far as is known."""
    row, column = (None if fact is None else fact.label(name) for name in ("row", "column"))
    if row is None or column is None or column.shape[axis] == 1 or varies(column, axis):
        return True
    return not any(varies(column, other) for other in range(column.dim()))


def is_product(name: str) -> bool:
    """Whether an operation is a matrix product."""
    return name in ("mm", "bmm", "addmm", "baddbmm", "mv")


def factors_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Factors:
    """The operands of a matrix product."""
    if name in ("addmm", "baddbmm"):
        return Factors(args[1], args[2], args[0], float(kwargs.get("alpha", 1)), float(kwargs.get("beta", 1)))
    return Factors(args[0], args[1], vector=name == "mv")


def product_labels(left: Labels | None, right: Labels | None, shape: torch.Size, *, vector: bool) -> Labels:
    """Labels of a product of operands with these labels: its batch, row and column, and the input it belongs to.

    Labels live longer than tensors, and keep none alive.
    """

    def make(name: str) -> Tensor | None:
        whole = (*shape, 1) if vector else shape
        axes = {"batch": range(len(whole) - 2), "row": [len(whole) - 2], "column": [len(whole) - 1]}
        if name in axes:
            sizes = {axis: whole[axis] for axis in axes[name]}
            label: Tensor | None = along(whole, sizes, math.prod(sizes.values()))
        else:
            label = _inherited(name, left, None if vector else right, whole)
        return label[..., 0] if vector and label is not None else label

    given = right if left is None else left
    return Labels(make) if given is None else given.leading_to(("product", left is None, right, shape, vector), make)


def _inherited(name: str, left: Labels | None, right: Labels | None, shape: Sequence[int]) -> Tensor | None:
    """The input or token of each element: that of its row on the left, or of its column on the right."""
    if name not in ("sample", "token"):
        return None
    mixed = False
    for labels, axis in ((left, -1), (right, -2)):
        label = None if labels is None else labels.get(name)
        if label is not None and not varies(label, axis):
            return label.narrow(axis, 0, 1).expand(tuple(shape))
        mixed = mixed or label is not None
    return lost(name, shape) if mixed else None


def convolution_labels(given: Labels | None, shape: torch.Size, depthwise: bool) -> Labels:
    """Labels of a convolution (inputs, channels, *places): channels are columns, inputs and places rows.

    A depthwise one keeps channels apart: what columns they were before still tells heads apart that share the first
    axis with the inputs.
    """

    def make(name: str) -> Tensor | None:
        label = None
        if name == "sample" or (name == "column" and depthwise):
            label = None if given is None else given.get(name)
        if label is not None and not any(varies(label, axis) for axis in range(2, label.dim())):
            small = label[:, : shape[1] if name == "column" else 1]
            for axis in range(2, len(shape)):
                small = small.narrow(axis, 0, 1)
            return small.expand(shape)
        if name == "column":
            return along(shape, {1: shape[1]}, shape[1])
        if name == "row":
            sizes = {axis: length for axis, length in enumerate(shape) if axis != 1}
            return along(shape, sizes, math.prod(sizes.values()))
        return None

    return Labels(make) if given is None else given.leading_to(("convolution", shape, depthwise), make)


def lookup_labels(given: Labels | None, shape: torch.Size) -> Labels:
    """Labels of rows that were looked up in a table, (*places, width)."""

    def make(name: str) -> Tensor | None:
        if name == "column":
            return along(shape, {len(shape) - 1: shape[-1]}, shape[-1])
        if name == "row":
            return along(shape, dict(enumerate(shape[:-1])), math.prod(shape[:-1]))
        label = given.get(name) if given is not None and name in ("sample", "token") else None
        return None if label is None else label.unsqueeze(-1).expand(shape)

    return Labels(make) if given is None else given.leading_to(("lookup", shape), make)
