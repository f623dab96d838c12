"""What a result inherits from its operands: labels, and that it depends on the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Convolved, Fact, Form, Product, Scaled, Weights
from attnaudit.capture.tracing.labels import Labels
from attnaudit.capture.tracing.operations import TorchOp
from attnaudit.capture.tracing.places import first_known, makes_columns, resized, scattered, stays_in_place
from attnaudit.capture.tracing.writing import Writing, written


def converted(fact: Fact, before: Tensor) -> Fact:
    """Integers that become floats, such as masks, are no activations."""
    counts = fact.activation and not _is_whole(before)
    return fact if counts == fact.activation else replace(fact, activation=counts)


def inherited(
    operation: TorchOp,
    writing: Writing | None,
    made: Tensor,
    operands: Sequence[Tensor],
    facts: Sequence[Fact | None],
    form: Form | None,
) -> Fact:
    """The fact of a result that is no rearrangement."""
    pairs = list(zip(operands, facts, strict=True))
    floats = [fact for operand, fact in pairs if fact is not None and not _is_whole(operand)]
    activation = any(fact.activation for fact in floats)
    rotated = any(fact.rotated for fact in floats)
    # The labels of scores must be those of the product that they are, whatever is added to it.
    pairs.sort(key=lambda pair: (not _is_part_of(pair[1], form), -pair[0].numel()))
    first = next((own for own, fact in pairs if fact and fact.labels and own.shape == made.shape), None)
    if operation.name == "mul" and first is not None:
        rotated = rotated or _positions(first, operands, facts)
    if writing is not None and (form is None or isinstance(form, Scaled | Convolved)):
        part = next((fact for own, fact in pairs if own is writing.source), None)
        labels = _written(writing, facts[0], part, made.shape)
    else:
        labels = _kept(operation, made.shape, pairs, form)
    return Fact(labels, form, activation, rotated)


def _kept(
    operation: TorchOp, shape: torch.Size, pairs: Sequence[tuple[Tensor, Fact | None]], form: Form | None
) -> Labels | None:
    """Labels of the operands, if the operation leaves elements in their places.

    Those of scores say what became of them, and not which input they belong to: any operation keeps them. What is made
    of sizes and places, such as positions, says nothing of an activation that it is added to.
    """
    pairs = [pair for pair in pairs if pair[1] is not None and pair[1].activation] or pairs
    known = [(operand, fact.labels) for operand, fact in pairs if fact is not None and fact.labels is not None]
    if known and form is None and not stays_in_place(operation):
        return scattered([labels for _, labels in known], shape)
    same = [labels for operand, labels in known if operand.shape == shape]
    if same and not makes_columns(operation):
        return first_known(same)
    return next((resized(operation, labels, shape) for own, labels in known if own.dim() == len(shape)), None)


def _written(writing: Writing, whole: Fact | None, part: Fact | None, shape: torch.Size) -> Labels | None:
    """Labels of what a tensor is written into; numbers and parameters in it are taken to be like the rest."""
    before = None if whole is None else whole.labels
    if part is None or (part.labels is None and not part.activation):
        return before
    if before is None and whole is not None and whole.activation and not writing.everywhere:
        return None if part.labels is None else scattered([part.labels], shape)
    return written(writing, before, part.labels, shape)


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
