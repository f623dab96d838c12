"""Heads that share their keys and values, as one: the unit of every statement about keys and values."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attnaudit.capture.heads import Heads


def by_key_head(heads: Heads) -> Heads:
    """One head for every key head of a layer; the queries of all heads that share it follow one another.

    With grouped queries, g heads have the same keys and values. What a theory says of these is one statement, not g of
    them, and their attention matrix has the g·N queries of all of them as rows. Heads with keys of their own are
    unchanged. The number of a head is then that of its key head.
    """
    if heads.key_heads is None:
        return heads
    per_row = heads.per_input
    own = torch.tensor(heads.key_heads[:per_row])
    count = len(torch.unique(own))
    if count == per_row or per_row % count or len(torch.unique(own.bincount())) > 1:
        return heads
    group = per_row // count
    order = torch.argsort(own, stable=True).to(heads.key.device)
    if not all(_same(_grouped(tensor, order, group)) for tensor in (heads.key, heads.value, heads.scale)):
        return heads

    def stacked(tensor: Tensor | None) -> Tensor | None:
        """The rows of the heads of a group after one another."""
        return None if tensor is None else _grouped(tensor, order, group).flatten(1, 2)

    def alone(tensor: Tensor) -> Tensor:
        """Of the first head of a group, which is that of all."""
        return _grouped(tensor, order, group)[:, 0]

    query, output = stacked(heads.query), stacked(heads.output)
    assert query is not None
    assert output is not None
    rows = len(heads) // per_row
    index = [heads.index[row * per_row]._replace(head=head) for row in range(rows) for head in range(count)]
    return replace(
        heads,
        query=query,
        key=alone(heads.key),
        value=alone(heads.value),
        output=output,
        scale=alone(heads.scale),
        index=tuple(index),
        bias=stacked(heads.bias),
        sink=stacked(heads.sink),
        key_heads=None,
    )


def _grouped(tensor: Tensor, order: Tensor, group: int) -> Tensor:
    """(key heads of all rows, heads of a group, …)."""
    rows = tensor.reshape(-1, len(order), *tensor.shape[1:])[:, order]
    return rows.reshape(-1, group, *tensor.shape[1:])


def _same(groups: Tensor) -> bool:
    return bool((groups == groups[:, :1]).all())
