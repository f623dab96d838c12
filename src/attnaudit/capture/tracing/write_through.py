"""A tensor that is changed in place changes all others in the same memory, and so what is known of them."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from attnaudit.capture.tracing import scores
from attnaudit.capture.tracing.facts import Facts
from attnaudit.capture.tracing.forms import Changed, Fact, Product, Weights
from attnaudit.capture.tracing.memory import overwritten


def write_through(facts: Facts, part: Tensor, before: Fact | None) -> None:
    """Bring the facts of what shares memory with `part` up to date; its own was `before` until it was changed."""
    fact, whole = facts.get(part), part._base
    if fact is None:
        return
    moved = fact.form is None and fact.labels is not None and (before is None or fact.labels is not before.labels)
    if whole is not None:
        _write_whole(facts, whole, fact, blank=moved)
    if not moved and (whole is None or fact.form is None):
        return
    memory = part.untyped_storage()._cdata
    for other, known in facts.items():
        if other is part or other.untyped_storage()._cdata != memory:
            continue
        if moved and not _is_of_scores(known):
            unknown = known.labels is None and known.activation
            facts[other] = replace(
                known,
                labels=None if unknown else overwritten(other, known.labels, part, fact.labels),
                activation=known.activation or fact.activation,
                rotated=known.rotated or fact.rotated,
            )
        elif isinstance(known.form, Product) and whole is not None:
            facts[other] = scores.written(other, known, part, fact)


def _write_whole(facts: Facts, whole: Tensor, fact: Fact, *, blank: bool) -> None:
    """Something with this fact was written into a part of `whole`, which may have been `blank`."""
    known = facts.get(whole)
    if isinstance(fact.form, Changed | Product) and _is_of_scores(fact) and (known is None or known.form is None):
        reason = "its scores are put together from several products, as in sparse or sliding-window attention"
        facts[whole] = Fact(None, Changed(reason, object()))
    elif known is None:
        facts[whole] = Fact(None, activation=fact.activation and not blank)


def _is_of_scores(fact: Fact) -> bool:
    """Whether a tensor is scores or weights, or was computed from them."""
    form = fact.form
    return isinstance(form, Changed | Weights) or (isinstance(form, Product) and form.content)
