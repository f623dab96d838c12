"""What elementwise operations make of scores: which keep the form QKᵀ·scale + bias, and which end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Changed, Convolved, Fact, Form, Product, Scaled, Softmax, Weights
from attnaudit.capture.tracing.labels import varies
from attnaudit.capture.tracing.lazy import Lazy
from attnaudit.capture.tracing.moves import is_number
from attnaudit.capture.tracing.overwriting import REPLACING, hiding
from attnaudit.numerics.masks import HIDDEN

#: The operation has no rule for these operands.
NO_RULE = object()
Rule = Callable[[str, Sequence[Any], Mapping[str, Any], Sequence[Fact | None], Tensor], object]

_OWN_SCORES = "its bias depends on its own scores"
_TALKING = "its scores are mixed across heads by a linear layer (talking heads)"
_LINEAR = "it has no softmax between its two products (linear attention)"
BEFORE = " before the softmax"


def _form(fact: Fact | None) -> Form | None:
    return None if fact is None else fact.form


def _scaled(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """A number times an activation or scores, or one number per head times scores."""
    place = 0 if name == "div" or is_number(args[1]) else 1 if is_number(args[0]) else _scores_place(known)
    if len(args) != 2 or kwargs.get("rounding_mode") is not None:
        return NO_RULE
    form, factor = _form(known[place]), args[1 - place]
    if is_number(factor):
        number = float(factor)
        number = (1 / number if number else 0.0) if name == "div" else number
        if not number or number != number or abs(number) == float("inf"):
            return NO_RULE
        if isinstance(form, Product):
            return form.times(number)
        if isinstance(form, Scaled):
            return Scaled(form.scale * number)
        return Scaled(number) if form is None or isinstance(form, Convolved) else NO_RULE
    if not (isinstance(form, Product) and form.softcap is None and isinstance(factor, Tensor)):
        return NO_RULE
    if name == "mul" and form.content and form.bias is None and _is_mask(factor, known[1 - place]):
        return form.without(factor == 0)
    if factor.shape[-2:] != (1, 1) or args[place].shape != result.shape or _depends(known[1 - place], form.origin):
        return NO_RULE
    return form.times_each(1 / factor if name == "div" else factor)


def _is_mask(factor: Tensor, fact: Fact | None) -> bool:
    """Whether a factor has no other numbers than 0 and 1, and does not depend on the input."""
    return (fact is None or not fact.activation) and bool(((factor == 0) | (factor == 1)).all())


def _scores_place(known: Sequence[Fact | None]) -> int:
    """Which operand is the scores: a product of two activations rather than one of another kind."""
    places = [place for place, fact in enumerate(known[:2]) if isinstance(_form(fact), Product)]
    content = [place for place in places if known[place].form.content]  # type: ignore[union-attr]
    return (content or places or [0])[0]


def _depends(fact: Fact | None, origin: object) -> bool:
    """Whether a tensor was computed from these scores."""
    form = _form(fact)
    return isinstance(form, Changed | Product) and form.origin is origin


def _added(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """Scores plus a mask or position term."""
    place = _scores_place(known)
    form, other = _form(known[place]), args[1 - place]
    if not isinstance(form, Product) or args[place].shape != result.shape:
        return NO_RULE
    signs = [1.0, float(kwargs.get("alpha", 1)) * (-1 if name == "sub" else 1)]
    scores = form if signs[place] == 1 else form.times(signs[place])
    sign = signs[1 - place]
    if not isinstance(other, Tensor):
        return scores.plus(torch.tensor(float(other) * sign, device=result.device), False)
    fact = known[1 - place]
    its, from_input = _form(fact), fact is not None and fact.activation
    if isinstance(its, Weights):
        return Changed("attention weights are added to its scores", form.origin)
    if isinstance(its, Product) and its.content and form.content:
        return Changed("its scores are the sum of two products of activations", form.origin)
    if _depends(fact, form.origin):
        # What is the same for all keys is lost in the softmax, such as the largest score.
        if other.shape[-1] == 1 and result.shape[-1] > 1:
            return scores
        mixed = isinstance(its, Changed) and its.reason == _TALKING
        return Changed(_TALKING if mixed else _OWN_SCORES, form.origin)
    if from_input and not form.content:
        return None  # a residual connection around a linear layer
    return scores.plus(other if sign == 1 else other * sign, from_input)


def _masked(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """Scores that are replaced by a large negative number where a mask says so."""
    mask, value, place = _mask(name, args)
    form = None if place is None else _form(known[place])
    if mask is None or place is None or not isinstance(form, Product) or args[place].shape != result.shape:
        return NO_RULE
    if any(_depends(fact, form.origin) for number, fact in enumerate(known) if number != place):
        return Changed(_OWN_SCORES, form.origin)
    if not value <= HIDDEN:
        return NO_RULE
    hidden = torch.zeros(mask.shape, dtype=result.dtype, device=result.device).masked_fill(mask, value)
    return form.plus(hidden, False)


def _mask(name: str, args: Sequence[Any]) -> tuple[Tensor | None, float, int | None]:
    """Where scores are replaced, by what, and which operand they are."""
    if name == "masked_fill":
        return args[1], float(args[2]), 0
    if name == "where" and len(args) == 3:
        for place, other in ((1, 2), (2, 1)):
            if is_number(args[other]) and isinstance(args[place], Tensor) and args[place].dim():
                mask = args[0] if place == 2 else ~args[0]
                return mask, float(args[other]), place
    return None, 0.0, None


def _overwritten(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """Scores of which some are replaced by large negative numbers, at places of any kind."""
    form = _form(known[0])
    if not isinstance(form, Product) or not form.content or args[0].shape != result.shape:
        return NO_RULE
    if any(isinstance(_form(fact), Product) for fact in known[1:]):
        return NO_RULE  # numbers that were computed are written
    if any(_depends(fact, form.origin) for fact in known[1:]):
        return Changed(_OWN_SCORES, form.origin)
    hidden = hiding(name, args, kwargs)
    return NO_RULE if hidden is None else form.plus(hidden, False)


def _capped(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """Tanh of scores, the inner part of a soft cap."""
    form = _form(known[0])
    if not isinstance(form, Product) or not form.content:
        return NO_RULE
    if form.bias is not None:
        return Changed("its scores are capped after a bias is added to them", form.origin)
    return form.capped() if form.factor is None and form.softcap is None else NO_RULE


def _copied(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], known: Sequence[Fact | None], result: Tensor
) -> object:
    """Scores that are written over themselves, or into a new tensor."""
    before, after = known[0], known[1]
    ours, theirs = _form(before), _form(after)
    if not isinstance(ours, Product) or not ours.content:
        return theirs if args[0].shape == args[1].shape and args[0]._base is None else NO_RULE
    if isinstance(theirs, Product) and theirs.origin is ours.origin and theirs.scale == ours.scale:
        pairs = [[fact.label(name) for fact in (before, after) if fact] for name in ("batch", "row", "column")]
        if all(a is not None and b is not None and torch.equal(a, b) for a, b in pairs):
            return theirs
    kept = _overwritten(name, args, kwargs, known, result) if theirs is None else NO_RULE
    return Changed("some of its scores are replaced", ours.origin) if kept is NO_RULE else kept


RULES: dict[str, Rule] = {
    "mul": _scaled,
    "div": _scaled,
    "add": _added,
    "sub": _added,
    "masked_fill": _masked,
    "where": _masked,
    **dict.fromkeys(REPLACING, _overwritten),
    "tanh": _capped,
    "copy": _copied,
}


def multiplied(fact: Fact, other: Fact | None, axis: int) -> Changed | str | None:
    """What scores become in a matrix product over `axis`: a reason why they end there, or a form that goes on.

    Attention weights have their own rule. None if the operand is no scores, or has become something else.
    """
    form, active = fact.form, other is not None and other.activation
    if isinstance(form, Changed) and isinstance(form.origin, Softmax):
        unseen = other is not None and form.origin.known and not form.origin.content  # no input is seen to reach it
        return form.reason if active or unseen else None
    if not (isinstance(form, Changed) or (isinstance(form, Product) and (form.content or form.mixes))):
        return None
    row, column = fact.label("row"), fact.label("column")
    if row is None or column is None:
        return None
    over_keys = _only_along(row, axis) or _only_along(column, axis)
    if isinstance(form, Product) and form.mixes:
        sums_tokens = _over_tokens(form.left_fact, -1) and _over_tokens(form.right_fact, -2)
        return _LINEAR if active and sums_tokens and _only_along(row, axis) else None
    over_heads = not varies(row, axis) and not varies(column, axis)
    if active:
        if not over_keys:
            return None
        return _LINEAR if isinstance(form, Product) else f"{form.reason.removesuffix(BEFORE)}, without a softmax"
    if not (over_heads or over_keys) or isinstance(form, Changed):
        return form if over_heads and isinstance(form, Changed) else None
    return Changed(_TALKING if over_heads else f"its scores are multiplied by a matrix{BEFORE}", form.origin)


def _over_tokens(fact: Fact | None, axis: int) -> bool:
    """Whether an axis runs over rows of a projection, and not over columns."""
    row, column = (None if fact is None else fact.label(name) for name in ("row", "column"))
    return row is not None and column is not None and varies(row, axis) and not varies(column, axis)


def _only_along(label: Tensor, axis: int) -> bool:
    """Whether a label varies along this axis alone."""
    axis %= label.dim()
    return varies(label, axis) and not any(varies(label, other) for other in range(label.dim()) if other != axis)


def written(whole: Tensor, fact: Fact, part: Tensor, part_fact: Fact | None) -> Fact:
    """The fact of scores of which a part was changed in place: the bias of the part, inside that of the whole."""
    ours, theirs = fact.form, _form(part_fact)
    assert isinstance(ours, Product)
    if not (isinstance(theirs, Product) and theirs.origin is ours.origin and theirs.scale == ours.scale):
        return replace(fact, form=Changed("some of its scores are replaced", ours.origin))
    size = whole.untyped_storage().nbytes() // whole.element_size()
    memory = torch.zeros(size, dtype=whole.dtype, device=whole.device)
    outer, inner = (memory.as_strided(t.shape, t.stride(), t.storage_offset()) for t in (whole, part))
    for place, form in ((outer, ours), (inner, theirs)):
        place.copy_(torch.zeros(()).to(memory) if form.bias is None else form.bias.get())
    bias: Lazy[Tensor] = Lazy(lambda: outer)
    return replace(fact, form=replace(ours, bias=bias, bias_from_input=ours.bias_from_input or theirs.bias_from_input))
