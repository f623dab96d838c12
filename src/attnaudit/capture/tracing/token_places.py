"""Which tokens of the inputs queries and keys were made for, and whether they are the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import TokenPlaces
from attnaudit.capture.tracing.forms import Fact, Product
from attnaudit.capture.tracing.labels import OWN, narrowed
from attnaudit.capture.tracing.layout import Side

#: Takes the label of a tensor apart, one number for each token of every unit.
OfUnits = Callable[[Tensor], Int[Tensor, "units tokens"]]


def token_places(query: Side, key: Side, of_queries: OfUnits, of_keys: OfUnits, *, masked: bool) -> TokenPlaces:
    """Tokens of queries and keys; where nothing is masked, nothing can be padding, and those of units do not matter."""
    own, others = _tokens(query), _tokens(key)
    whole = TokenPlaces(*(None if label is None else torch.unique(narrowed(label)) for label in (own, others)))
    if not masked:
        return whole
    queries = None if own is None else of_queries(own)
    keys = None if others is None else of_keys(others)
    if queries is not None and keys is not None:
        return replace(whole, query=queries, key=keys, same=torch.equal(queries, keys))
    left, right = _projected(query.fact), _projected(key.fact)
    if left is None or right is None:
        return replace(whole, query=queries, key=keys, same=None if queries is keys else False)
    same = left.shape == right.shape and torch.equal(left, right)
    rows = query.label("row"), key.label("row")
    if same and rows[0] is not None and rows[1] is not None:
        same = torch.equal(of_queries(rows[0]), of_keys(rows[1]))
    return replace(whole, query=queries, key=keys, same=same)


def _tokens(side: Side) -> Tensor | None:
    """The tokens of the inputs; None if they are not known of some, as where a model adds tokens of its own."""
    label = side.label("token")
    return None if label is None or bool((narrowed(label) == OWN).any()) else label


def _projected(fact: Fact | None) -> Tensor | None:
    """What a projection was applied to, if nothing but that is known to have made a tensor, and it is still there."""
    form = None if fact is None else fact.form
    written = form.written if isinstance(form, Product) else None
    return None if written is None or written.again else written.tensor
