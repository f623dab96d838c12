"""What a result inherits from its operands: labels, and that it depends on the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Fact, Form, Product, Weights
from attnaudit.capture.tracing.labels import Labels, LastingMove, narrowed, varies


def converted(fact: Fact, before: Tensor) -> Fact:
    """Integers that become floats, such as masks, are no activations."""
    counts = fact.activation and not _is_whole(before)
    return fact if counts == fact.activation else replace(fact, activation=counts)


def inherited(
    name: str, made: Tensor, operands: Sequence[Tensor], facts: Sequence[Fact | None], form: Form | None
) -> Fact:
    """The fact of a result that is no rearrangement: labels of an operand of its shape, or of another size."""
    floats = [f for o, f in zip(operands, facts, strict=True) if f is not None and not _is_whole(o)]
    activation = any(fact.activation for fact in floats)
    rotated = any(fact.rotated for fact in floats)
    labels = None
    # The labels of scores must be those of the product that they are, whatever is added to it.
    pairs = list(zip(operands, facts, strict=True))
    pairs.sort(key=lambda pair: (not _is_part_of(pair[1], form), -pair[0].numel()))
    for operand, fact in pairs:
        if fact is None or fact.labels is None:
            continue
        if operand.shape == made.shape:
            labels = fact.labels
            rotated = rotated or (name == "mul" and _positions(operand, operands, facts))
            break
        if labels is None:
            labels = _resized(fact.labels, operand.shape, made.shape)
    return Fact(labels, form, activation, rotated)


def _is_part_of(fact: Fact | None, form: Form | None) -> bool:
    """Whether a form is what became of the form of an operand."""
    before = None if fact is None else fact.form
    if isinstance(before, Product) and isinstance(form, Product):
        return before.origin is form.origin
    return isinstance(before, Weights) and before is form


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _positions(operand: Tensor, operands: Sequence[Tensor], facts: Sequence[Fact | None]) -> bool:
    """Whether one factor depends on the place of a token and not on the input, as in rotary embeddings."""
    return any(
        other is not operand and sum(length > 1 for length in other.shape) > 1 and (fact is None or not fact.activation)
        for other, fact in zip(operands, facts, strict=True)
    )


def _resized(labels: Labels, before: torch.Size, after: torch.Size) -> Labels | None:
    """Labels after pooling, convolution or broadcasting: those that do not vary where the size changed."""
    return labels.moved(Resize(after)) if len(before) == len(after) else None


@dataclass(frozen=True, slots=True)
class Resize(LastingMove):
    """Another length of axes along which nothing varies."""

    size: torch.Size

    def __call__(self, label: Tensor) -> Tensor:
        """The label with this size."""
        for axis, length in enumerate(self.size):
            if label.shape[axis] != length:
                if varies(label, axis):
                    raise ValueError("it varies where the size changed")
                label = label.narrow(axis, 0, 1)
        return narrowed(label).expand(self.size)
