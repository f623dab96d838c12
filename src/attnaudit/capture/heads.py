"""Queries, keys, values and outputs of a batch of attention heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.capture.tracing.labels import narrowed
from attnaudit.display import counted, html_table
from attnaudit.errors import ShapeError
from attnaudit.numerics.blocks import row_slices
from attnaudit.numerics.masks import later_keys, visible
from attnaudit.numerics.products import product
from attnaudit.records.head_id import HeadId

#: The number of scores computed at once where a head is processed in blocks of queries.
BLOCK = {"cpu": 1 << 22, "cuda": 1 << 26}


@dataclass(frozen=True)
class Heads:
    """A batch of attention heads with `output = softmax(query @ keyᵀ · scale + bias) @ value`.

    Queries and keys are as they were before any number was multiplied in: `scale` is all that multiplies QKᵀ. `bias`
    holds masks (-inf) and additive position terms; `prefix_tokens` counts the class and distillation tokens before the
    patches. `source`, if known, is what the value projection was applied to; each row belongs to the same number of
    consecutive heads. With a `softcap` c the logits are c·tanh(QKᵀ·scale / c) + bias; `sink` is the logit of a key
    without a value, which takes its share of the softmax. `key_heads`, if known, numbers the keys and values of each
    head: heads of a layer that share them have the same number (grouped queries), see `by_key_head`.
    """

    query: Float[Tensor, "heads queries dim"]
    key: Float[Tensor, "heads tokens dim"]
    value: Float[Tensor, "heads tokens value_dim"]
    output: Float[Tensor, "heads queries value_dim"]
    scale: Float[Tensor, "heads"]
    index: tuple[HeadId, ...]
    bias: Float[Tensor, "heads queries tokens"] | None = None
    prefix_tokens: int = 0
    source: Float[Tensor, "rows tokens width"] | None = None
    softcap: float | None = None
    sink: Float[Tensor, "heads queries"] | None = None
    key_heads: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        heads, queries, dim = self.query.shape
        tokens, value_dim = self.value.shape[1:]
        expected = {
            "key": (heads, tokens, dim),
            "value": (heads, tokens, value_dim),
            "output": (heads, queries, value_dim),
            "scale": (heads,),
        }
        if self.bias is not None:
            expected["bias"] = (heads, queries, tokens)
        if self.sink is not None:
            expected["sink"] = (heads, queries)
        for name, shape in expected.items():
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise ShapeError(f"Heads.{name} must have shape {shape} for these queries and values, got {found}.")
        if len(self.index) != heads:
            raise ShapeError(f"Heads.index must have {heads} entries, one per head, got {len(self.index)}.")
        if self.key_heads is not None and len(self.key_heads) != heads:
            raise ShapeError(f"Heads.key_heads must have {heads} entries, one per head, got {len(self.key_heads)}.")

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        inputs, layers = len({i.input for i in self.index}), len({i.layer for i in self.index})
        places = f"{counted(inputs, 'input')}, {counted(layers, 'layer')}"
        shape = f"{len(self)} heads x {self.tokens} tokens x {self.dim} dims"
        return f"Heads({shape}; {places}; {str(self.key.dtype).removeprefix('torch.')} on {self.key.device})"

    def _repr_html_(self) -> str:
        rows = [
            ("inputs", f"{len({i.input for i in self.index}):,}"),
            ("layers", f"{len({i.layer for i in self.index}):,}"),
            ("tokens", f"{self.tokens:,}"),
            ("dims", f"{self.dim:,}"),
            ("numbers", f"{str(self.key.dtype).removeprefix('torch.')} on {self.key.device}"),
        ]
        return html_table(f"Heads: {len(self):,} of {', '.join(dict.fromkeys(i.model for i in self.index))}", rows)

    @property
    def tokens(self) -> int:
        """The number of keys (and values) of every head."""
        return self.key.shape[1]

    @property
    def dim(self) -> int:
        """The dimension of queries and keys."""
        return self.key.shape[2]

    @property
    def per_input(self) -> int:
        """How many heads have the same input, layer and window as the first; in a capture they follow each other."""
        first = self.index[0]
        return sum(entry._replace(head=first.head) == first for entry in self.index)

    @property
    def shape_key(self) -> tuple[float, ...]:
        """What batches must have in common to be concatenated."""
        present = int(self.bias is None), int(self.sink is None), self.softcap or 0, int(self.causal)
        known = 0 if self.source is None else self.source.shape[-1]
        return (*self.query.shape[1:], *self.value.shape[1:], *present, known, self.prefix_tokens)

    @cached_property
    def seen(self) -> Bool[Tensor, "#heads tokens tokens"] | None:
        """Which keys the query of each token sees; None if there is no mask, or if queries are not those of tokens."""
        queries = self.query.shape[1]
        if self.bias is None or queries % self.tokens:
            return None
        rows = narrowed(self.bias, [0])[:, : self.tokens]  # of heads that share their keys, all have the same mask
        return visible(rows)

    @cached_property
    def causal(self) -> bool:
        """Whether every token sees itself and no later one."""
        seen = self.seen
        if seen is None or self.tokens < 2:
            return False
        later = later_keys(self.tokens, self.tokens, seen.device)
        return not bool((seen & later).any()) and bool(seen.diagonal(dim1=1, dim2=2).all())

    def to(self, dtype: torch.dtype) -> Heads:
        """The same heads in another floating-point type."""
        names = ("query", "key", "value", "output", "scale", "bias", "sink")
        found = {name: getattr(self, name) for name in names}
        changed: dict[str, Any] = {name: _as(own, dtype) for name, own in found.items() if own is not None}
        return replace(self, **changed)

    def part(self, start: int, stop: int) -> Heads:
        """The heads from `start` to `stop`: one head, or all heads of some rows of `source`."""
        names = ("query", "key", "value", "output", "scale", "index", "bias", "sink", "key_heads")
        whole = {name: getattr(self, name) for name in names}
        parts: dict[str, Any] = {name: None if own is None else own[start:stop] for name, own in whole.items()}
        source = self.source
        if source is not None:
            per_row = len(self) // len(source)
            source = source[start // per_row : -(-stop // per_row)]
        return self._with_attention(replace(self, **parts, source=source), slice(start, stop))

    def among(self, places: Sequence[int]) -> Heads:
        """The heads at these places, in any order and as often as they are named; rows of `source` are named whole."""
        chosen, names = list(places), ("query", "key", "value", "output", "scale", "bias", "sink")
        whole = {name: getattr(self, name) for name in names}
        parts: dict[str, Any] = {name: None if own is None else own[chosen] for name, own in whole.items()}
        index = tuple(self.index[place] for place in chosen)
        key_heads = None if self.key_heads is None else tuple(self.key_heads[place] for place in chosen)
        source = self.source
        if source is not None:
            per_row = len(self) // len(source)
            source = source[[place // per_row for place in chosen[::per_row]]]
        found = replace(self, **parts, index=index, key_heads=key_heads, source=source)
        return self._with_attention(found, chosen)

    def _with_attention(self, some: Heads, places: slice | list[int]) -> Heads:
        """Some of these heads, with their attention if it is known."""
        if "_attention" in vars(self):
            vars(some)["_attention"] = self._attention[places]
        return some

    def attention(self) -> Float[Tensor, "heads queries tokens"]:
        """The attention matrix in float64, as the model has it: with its mask, position terms, cap and sinks.

        It is kept, because theories, references and measures of the same heads need it.
        """
        return self._attention

    @cached_property
    def _attention(self) -> Float[Tensor, "heads queries tokens"]:
        return self.to(torch.float64)._weights(slice(None))

    def attended(self, values: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads queries columns"]:
        """`attention() @ values`, computed in blocks of queries so that the attention matrix is never held whole."""
        exact = self.to(torch.float64)
        result = values.new_empty(len(self), self.query.shape[1], values.shape[2], dtype=torch.float64)
        for rows in query_blocks(self):
            result[:, rows] = exact._weights(rows) @ values.double()
        return result

    def replayed(self) -> Float[Tensor, "heads queries value_dim"]:
        """The outputs recomputed from the captured tensors, in blocks of queries and in their own precision."""
        result = torch.empty_like(self.output)
        for rows in query_blocks(self):
            result[:, rows] = self._weights(rows) @ self.value
        return result

    def _weights(self, rows: slice) -> Float[Tensor, "heads rows tokens"]:
        """softmax(QKᵀ·scale + bias) of some queries, with cap and sinks; 0 for a query that sees no key."""
        logits = product(self.query[:, rows], self.key.mT).mul_(self.scale[:, None, None])
        if self.softcap is not None:
            logits = logits.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.bias is not None:
            logits += self.bias[:, rows]
        if self.sink is not None:
            logits = torch.cat([logits, self.sink[:, rows, None]], dim=-1)
        weights = torch.softmax(logits, dim=-1)[..., : self.tokens]
        if self.bias is None or self.sink is not None:
            return weights
        blind = torch.isneginf(narrowed(self.bias)[:, rows if self.bias.stride(1) else slice(None)]).all(dim=-1)
        return weights.masked_fill(blind[..., None], 0) if bool(blind.any()) else weights

    @staticmethod
    def cat(batches: Sequence[Heads]) -> Heads:
        """Concatenate batches of one shape, in order."""
        if not batches:
            raise ShapeError("There are no heads of softmax attention.")
        shapes = {batch.shape_key for batch in batches}
        if len(shapes) != 1:
            raise ShapeError(
                f"{len(batches)} batches of heads have {len(shapes)} different shapes ({sorted(shapes)}): "
                "use them one at a time, such as `Capture.layers`."
            )
        first = batches[0]
        joined = {
            name: torch.cat([getattr(b, name) for b in batches])
            for name in ("query", "key", "value", "output", "scale", "bias", "source", "sink")
            if all(getattr(b, name) is not None for b in batches)
        }
        index = tuple(entry for b in batches for entry in b.index)
        shared = [number for b in batches for number in b.key_heads or ()]
        return Heads(
            **joined,
            index=index,
            prefix_tokens=first.prefix_tokens,
            softcap=first.softcap,
            key_heads=tuple(shared) if len(shared) == len(index) else None,
        )


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another type, expanded along the same axes: a mask that all heads share stays one mask."""
    return tensor if tensor.dtype == dtype else narrowed(tensor).to(dtype).expand_as(tensor)


def query_blocks(heads: Heads) -> Iterator[slice]:
    """Slices of queries with about `BLOCK` scores each, over all heads."""
    return row_slices(heads.query.shape[1], len(heads) * heads.tokens, BLOCK, heads.query.device)
