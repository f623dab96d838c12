"""What operations without a rule of their own make of scores and attention weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Changed, Dropout, Fact, Form, Product, Softmax, Weights
from attnaudit.capture.tracing.moves import changed_nothing
from attnaudit.capture.tracing.scores import BEFORE

#: What operations do to weights, in words.
_AFTER = {"mul": "are multiplied by other factors", "add": "are added to others", "sub": "are subtracted from others"}
#: The fewest axes of scores: inputs or heads, queries, and keys.
_SCORES = 3
_HARD = frozenset(("max", "argmax"))
HARD = "only the largest of its attention weights counts (hard attention)"


def changed_form(
    name: str, operands: Sequence[Tensor], facts: Mapping[int, Fact | None], result: Tensor
) -> Form | None:
    """Nothing is left of a form, unless the operation gave back what it got; what scores become stays known."""
    for argument in operands:
        fact = facts.get(id(argument))
        form = None if fact is None else fact.form
        if isinstance(form, Changed):
            _note_reason(form, facts)
            weighs = isinstance(form.origin, Softmax) and _meets_activation(argument, facts)
            return None if weighs else form
        if isinstance(form, Weights):
            return _changed_weights(name, argument, form, facts, result)
        if isinstance(form, Product) and form.content:
            if argument is not result and changed_nothing(argument, result):
                return form
            reason = HARD if name in _HARD else f"its scores pass through {name}{BEFORE}"
            return Changed(reason, form.origin)
        if isinstance(form, Dropout):
            return form
    return None


def _note_reason(changed: Changed, facts: Mapping[int, Fact | None]) -> None:
    """Weights that meet something computed from scores are what it makes of them, as in hard attention."""
    for fact in facts.values():
        if fact is not None and isinstance(fact.form, Weights) and fact.form.softmax.changed is None:
            fact.form.softmax.changed = changed.reason


def _changed_weights(
    name: str, weights: Tensor, form: Weights, facts: Mapping[int, Fact | None], result: Tensor
) -> Form | None:
    """What an operation makes of attention weights."""
    softmax = form.softmax
    if weights is not result and changed_nothing(weights, result):
        return form
    if softmax.known and not softmax.content and _is_router(form):
        return None  # which has more uses than attention weights have
    if _only_empties_rows(weights, result, softmax):
        return form
    reason = f"its attention weights {_AFTER.get(name.removesuffix('_'), f'pass through {name}')} after the softmax"
    if name in _HARD:
        reason = HARD
    if any(fact is not None and isinstance(fact.form, Dropout) for fact in facts.values()):
        reason = "attention dropout is on"
    if not softmax.known:
        reason = softmax.reason or softmax.otherwise
    elif softmax.changed is None and softmax.content:
        softmax.changed = reason
    return None if _meets_activation(weights, facts) else Changed(reason, softmax)


def _is_router(weights: Weights) -> bool:
    """Whether logits are those of a router or a gate, tokens times a matrix, and no scores of queries and keys.

    Both sides of scores are computed, even if not from anything that is known to be an input.
    """
    product = weights.product
    computed = product is not None and product.left_fact is not None and product.right_fact is not None
    return not computed or len(weights.softmax.shape) < _SCORES


def _meets_activation(weights: Tensor, facts: Mapping[int, Fact | None]) -> bool:
    """Whether another operand depends on the input: what weights and activations make are activations."""
    return any(
        fact is not None and fact.activation and key != id(weights) and not isinstance(fact.form, Weights | Changed)
        for key, fact in facts.items()
    )


def _only_empties_rows(before: Tensor, after: Tensor, softmax: Softmax) -> bool:
    """Whether weights became 0 for some queries altogether, as for those that see no key, and else stayed the same."""
    if tuple(before.shape) != softmax.shape or before.shape != after.shape:
        return False
    empty = (after == 0).all(dim=softmax.axis, keepdim=True)
    if not torch.equal(torch.where(empty, 0, before), after.to(before.dtype)):
        return False
    softmax.zeroed = empty if softmax.zeroed is None else softmax.zeroed | empty
    return True
