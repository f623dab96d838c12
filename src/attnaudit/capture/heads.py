"""Queries, keys, values and outputs of a batch of attention heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.tracing.labels import narrowed
from attnaudit.display import html_table
from attnaudit.errors import ShapeError
from attnaudit.numerics.blocks import row_slices
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
    without a value, which takes its share of the softmax.
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

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        places = f"{len({i.input for i in self.index})} inputs, {len({i.layer for i in self.index})} layers"
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
    def shape_key(self) -> tuple[float, ...]:
        """What batches must have in common to be concatenated."""
        present = int(self.bias is None), int(self.sink is None), self.softcap or 0
        return (*self.query.shape[1:], *self.value.shape[1:], *present, self.prefix_tokens)

    def to(self, dtype: torch.dtype) -> Heads:
        """The same heads in another floating-point type."""
        names = ("query", "key", "value", "output", "scale", "bias", "sink")
        found = {name: getattr(self, name) for name in names}
        return replace(self, **{name: tensor.to(dtype) for name, tensor in found.items() if tensor is not None})

    def part(self, start: int, stop: int) -> Heads:
        """The heads from `start` to `stop`: one head, or all heads of some rows of `source`."""
        tensors = {name: getattr(self, name)[start:stop] for name in ("query", "key", "value", "output", "scale")}
        source = self.source
        if source is not None:
            per_row = len(self) // len(source)
            source = source[start // per_row : -(-stop // per_row)]
        bias, sink = (None if own is None else own[start:stop] for own in (self.bias, self.sink))
        return replace(self, **tensors, index=self.index[start:stop], bias=bias, source=source, sink=sink)

    def attention(self) -> Float[Tensor, "heads queries tokens"]:
        """softmax(QKᵀ·scale) in float64, without masks, position terms, caps and sinks, as the theories define it."""
        return torch.softmax(self.query.double() @ self.key.double().mT * self.scale.double()[:, None, None], dim=-1)

    def attended(self, values: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads queries columns"]:
        """`attention() @ values`, computed in blocks of queries so that the attention matrix is never held whole."""
        result = values.new_empty(len(self), self.query.shape[1], values.shape[2], dtype=torch.float64)
        for rows in query_blocks(self):
            part = replace(self, query=self.query[:, rows], output=self.output[:, rows], bias=None, sink=None)
            result[:, rows] = part.attention() @ values.double()
        return result

    def replayed(self) -> Float[Tensor, "heads queries value_dim"]:
        """softmax(QKᵀ·scale + bias)V recomputed from the captured tensors, in blocks of queries."""
        result = torch.empty_like(self.output)
        for rows in query_blocks(self):
            result[:, rows] = self._weights(rows) @ self.value
        return result

    def _weights(self, rows: slice) -> Float[Tensor, "heads rows tokens"]:
        """The attention weights of some queries, as the model has them; 0 for a query that sees no key."""
        logits = (self.query[:, rows] @ self.key.mT).mul_(self.scale[:, None, None])
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
        return Heads(**joined, index=index, prefix_tokens=first.prefix_tokens, softcap=first.softcap)


def query_blocks(heads: Heads) -> Iterator[slice]:
    """Slices of queries with about `BLOCK` scores each, over all heads."""
    return row_slices(heads.query.shape[1], len(heads) * heads.tokens, BLOCK, heads.query.device)
