"""Leave padding out of heads: tokens that are none of their input, and queries that are made for such tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnaudit.capture.attention_call import TokenPlaces
from attnaudit.capture.heads import Heads
from attnaudit.capture.input_masks import InputMasks
from attnaudit.capture.tracing.labels import narrowed
from attnaudit.errors import InputError
from attnaudit.numerics.masks import later_keys, visible


@dataclass(frozen=True)
class Known:
    """What is known besides the mask of a layer: the tokens of its units, in order, and the masks of the inputs."""

    sample: Int[Tensor, "heads"]
    order: Int[Tensor, "heads"]
    tokens: TokenPlaces | None
    masks: InputMasks

    @property
    def same(self) -> bool | None:
        """Whether queries and keys are made for the same tokens."""
        return None if self.tokens is None else self.tokens.same

    @property
    def queries(self) -> Bool[Tensor, "heads queries"] | None:
        """Which queries the masks of the inputs call real; None if they say nothing of them."""
        if self.tokens is None or self.tokens.query is None:
            return None
        return self.masks.real(self.sample, self.tokens.query[self.order])


@dataclass(frozen=True)
class Real:
    """Which queries and tokens of heads are no padding."""

    queries: Bool[Tensor, "heads queries"]
    tokens: Bool[Tensor, "heads tokens"]


def without_padding(heads: Heads, per_row: int, known: Known) -> Iterator[Heads]:
    """The heads without padding, one batch for every set of tokens that is left; windows without any are left out.

    Raises:
        InputError: that leaves nothing of an input.
    """
    real = _real_parts(heads, known)
    if real is None:
        yield heads
        return
    kept = torch.cat([real.queries, real.tokens], dim=1).view(-1, per_row, heads.query.shape[1] + heads.tokens)
    rows = torch.nonzero(real.queries[::per_row].any(dim=1))[:, 0]
    if not bool((kept == kept[:, :1]).all()) or not len(rows):
        yield heads
        return
    left = {heads.index[row * per_row].input for row in rows.tolist()}
    if empty := next((own.input for own in heads.index if own.input not in left), None):
        raise InputError(f"{empty} has no token that another token sees, only padding: leave it out.")
    sets, which = torch.unique(kept[rows, 0], dim=0, return_inverse=True)
    for number, own in enumerate(sets):
        queries, tokens = (torch.nonzero(part)[:, 0] for part in own.split([heads.query.shape[1], heads.tokens]))
        yield _selected(heads, rows[which == number], queries, tokens, per_row)


def _real_parts(heads: Heads, known: Known) -> Real | None:
    """Which queries and tokens are no padding; None if all are real.

    What a real query sees is kept whatever a mask of the inputs says: without it, the head would be another one.
    """
    if heads.bias is None:
        return None
    seen = visible(narrowed(heads.bias, [0]))
    given = known.queries
    given = None if given is None else given.to(seen.device)
    if seen.shape[1] == seen.shape[2] and known.same is not False:
        start = _started(heads, seen) if given is None else given
        tokens = queries = _of_each(start, seen)
    else:
        queries = seen.any(dim=2) if given is None else given & seen.any(dim=2)
        tokens = (seen & queries[:, :, None]).any(dim=1)
    if bool(tokens.all()) and (given is None or bool(queries.all())):
        return None
    return Real(queries.expand(len(heads), -1), tokens.expand(len(heads), -1))


def _started(heads: Heads, seen: Bool[Tensor, "heads tokens tokens"]) -> Bool[Tensor, "heads tokens"]:
    """Tokens of self-attention that are surely real, as far as the mask of the layer tells.

    A real token sees itself, and some real token sees it; only if none sees itself (some models hide it) every query
    counts.
    """
    own = seen.diagonal(dim1=1, dim2=2)
    counts = (own | ~own.any(dim=1, keepdim=True)) & ~_lonely(heads, seen)
    return (own & counts) | (seen & counts[:, :, None]).any(dim=1)


def _lonely(heads: Heads, seen: Bool[Tensor, "heads tokens tokens"]) -> Bool[Tensor, "heads tokens"]:
    """Tokens that only themselves see: padding, where a mask lets every token see itself.

    Real tokens are so in other layers: the last one of a causal layer, or of a causal part behind a prefix that all
    tokens see, and one that is alone in its window.
    """
    size = seen.shape[1]
    own, none = seen.diagonal(dim1=1, dim2=2), torch.zeros_like(seen[:, :, 0])
    if not bool(own.all()) or not bool((seen & later_keys(size, size, seen.device)).any()):
        return none
    others = seen & ~torch.eye(size, dtype=torch.bool, device=seen.device)
    lonely = ~others.any(dim=1)
    if heads.index[-1].window:
        lonely &= others.any(dim=2)
    only_last = (lonely == (torch.arange(size, device=seen.device) == size - 1)).all(dim=1)
    if bool(only_last.all()):
        return none
    ends_causal = only_last & ~others[:, :-2, -2].any(dim=1)  # no earlier token sees the one before it, either
    return lonely & ~(ends_causal | lonely.all(dim=1))[:, None]


def _of_each(start: Bool[Tensor, "#heads tokens"], seen: Bool[Tensor, "#heads tokens tokens"]) -> Tensor:
    """Tokens that are reached from those of each head; under a mask that all heads share, from each set of them."""
    if bool(start.all()):
        return start
    if len(seen) == 1 < len(start):
        sets, which = torch.unique(start, dim=0, return_inverse=True)
        return _reached(sets, seen)[which]
    return _reached(start, seen)


def _reached(tokens: Bool[Tensor, "heads tokens"], seen: Bool[Tensor, "heads tokens tokens"]) -> Tensor:
    """These tokens, those that they see, those that these see, and so on."""
    more = tokens | (seen & tokens[:, :, None]).any(dim=1)
    return tokens if torch.equal(more, tokens) else _reached(more, seen)


def _selected(heads: Heads, rows: Tensor, queries: Tensor, tokens: Tensor, per_row: int) -> Heads:
    """All heads of some rows, with some of their queries and tokens."""
    units = (rows[:, None] * per_row + torch.arange(per_row, device=rows.device)).flatten()
    bias = heads.bias
    if bias is not None:
        bias = narrowed(bias, [0])
        bias = (bias if len(bias) == 1 else bias[units])[:, queries][:, :, tokens].expand(len(units), -1, -1)
    return replace(
        heads,
        query=heads.query[units][:, queries],
        key=heads.key[units][:, tokens],
        value=heads.value[units][:, tokens],
        output=heads.output[units][:, queries],
        scale=heads.scale[units],
        index=tuple(heads.index[unit] for unit in units.tolist()),
        bias=bias,
        source=None if heads.source is None else heads.source[rows][:, tokens],
        sink=None if heads.sink is None else heads.sink[units][:, queries],
        key_heads=None if heads.key_heads is None else tuple(heads.key_heads[unit] for unit in units.tolist()),
    )
