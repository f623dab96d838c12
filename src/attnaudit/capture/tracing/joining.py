"""Tensors that are joined: a class token and patches, or scores and the logits of a sink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Changed, Fact, Form, Product, Weights
from attnaudit.capture.tracing.labels import Labels, joined, varies
from attnaudit.capture.tracing.lazy import Lazy

#: The column of a logit that no key made.
SINK = -1


def joined_fact(operands: Sequence[Tensor], facts: Sequence[Fact | None], axis: int, result: Tensor) -> Fact:
    """The fact of `torch.cat(operands, axis)`."""
    axis %= result.dim()
    kept = [(operand, fact) for operand, fact in zip(operands, facts, strict=True) if operand.dim() == result.dim()]
    if len(kept) == 1 and kept[0][0].shape == result.shape:
        return kept[0][1] or Fact(None, activation=False)  # an empty cache was joined to it
    scores = [place for place, (_, fact) in enumerate(kept) if fact is not None and isinstance(fact.form, Product)]
    content = [place for place in scores if kept[place][1].form.content]  # type: ignore[union-attr]
    form: Form | None = None
    labels = _labels([None if fact is None else fact.labels for _, fact in kept], axis, result.shape)
    if len(content) == len(scores) == 1 and not _has_scores(kept, content[0]):
        form, labels = _with_sinks(kept, content[0], axis)
    elif content or _has_scores(kept, None):
        form = Changed("its scores are joined from several products (sparse attention)", object())
    activation = any(fact is not None and fact.activation for _, fact in kept)
    rotated = any(fact is not None and fact.rotated for _, fact in kept)
    return Fact(labels, form, activation, rotated)


def _has_scores(kept: Sequence[tuple[Tensor, Fact | None]], except_for: int | None) -> bool:
    """Whether something was computed from scores or weights, apart from one part."""
    return any(
        fact is not None and place != except_for and isinstance(fact.form, Weights | Changed)
        for place, (_, fact) in enumerate(kept)
    )


def _labels(kept: Sequence[Labels | None], axis: int, shape: torch.Size) -> Labels:
    """Labels of all parts; a part that has none (a class token) is taken to be like the others if those are alike."""

    def make(name: str) -> Tensor | None:
        parts = [None if labels is None else labels.get(name) for labels in kept]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return joined(known, axis)
        if known and not any(varies(part, axis) for part in known):
            return known[0].narrow(axis, 0, 1).expand(shape)
        return None

    known = next((labels for labels in kept if labels is not None), None)
    return Labels(make) if known is None else known.leading_to(("cat", *kept, axis, shape), make)


def _with_sinks(kept: Sequence[tuple[Tensor, Fact | None]], place: int, axis: int) -> tuple[Form, Labels]:
    """Scores with further logits beside them: a bias for columns that no key made."""
    own, fact = kept[place]
    assert fact is not None
    assert isinstance(fact.form, Product)
    product = fact.form
    labels, shape = fact.labels, own.shape
    before = sum(operand.shape[axis] for operand, _ in kept[:place])
    total = sum(operand.shape[axis] for operand, _ in kept)

    def bias() -> Tensor:
        given = own.new_zeros(()) if product.bias is None else product.bias.get()
        parts = [operand for operand, _ in kept]
        parts[place] = given.expand(own.shape).to(own.dtype)
        return torch.cat(parts, axis)

    def extended(name: str) -> Tensor | None:
        label, size = None if labels is None else labels.get(name), _sized(shape, axis, total)
        if label is None or not varies(label, axis):
            return None if label is None else label.narrow(axis, 0, 1).expand(size)
        edges = (before, total - before - shape[axis])
        first, last = (label.new_full((1,) * label.dim(), SINK).expand(_sized(size, axis, edge)) for edge in edges)
        return joined([first, label, last], axis)

    return replace(product, bias=Lazy(bias)), Labels(extended)


def _sized(size: Sequence[int], axis: int, length: int) -> list[int]:
    return [length if place == axis else own for place, own in enumerate(size)]
