"""From captured heads of one input to what is kept of each: attention, eigenvalues, and the best-aligned columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture import Heads
from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures.columns import MatchedColumns, matched_columns
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.protocol import Protocol
from attnaudit.records.head_views import HeadView
from attnaudit.records.quantised import QuantisedRows

#: Tokens of the block of attention among the first ones: as many as have room for their names.
BLOCK_TOKENS = 24
#: How many of the best pairs of columns are kept.
PAIRS = 2

#: From a number of tokens to the (height, width) of the last of them in the picture, if they are laid out so.
Grid = Callable[[int], tuple[int, int] | None]


@dataclass(frozen=True)
class Windows:
    """The heads of the first window of an input, by key head, and how many windows and heads were taken together."""

    heads: Heads
    count: int
    query_heads: int


def first_windows(layer: Heads, name: str) -> Windows | None:
    """Of one input; None if the layer does not have it."""
    places = [place for place, entry in enumerate(layer.index) if entry.input == name]
    if not places:
        return None
    per_input = layer.per_input
    own = layer.part(places[0], places[0] + per_input)
    grouped = by_key_head(own)
    return Windows(grouped, len(places) // per_input, per_input // len(grouped))


def head_views(shown: Windows, grid: Grid, *, is_picture: bool, protocol: Protocol) -> Iterator[HeadView]:
    """What is kept of every head of a window."""
    heads = shown.heads
    at = MeasureInput.of(heads, protocol)
    spectrum, theorem = at.keys.spectrum, at.impossible
    bounds = torch.exp(-spectrum.log_mass.amin(dim=-1)).tolist()
    layout = grid(heads.tokens)
    causal = heads.causal
    query = _one_query(heads, shown.query_heads, is_picture and (layout is None or _before(heads, layout) == 0))
    for place, entry in enumerate(heads.index):
        problem = theorem or at.prediction.problems[place] or ""
        found = None if problem else matched_columns(at, place)
        eigenvalues = spectrum.eigenvalues[place]
        alone = heads.part(place, place + 1)
        attention = alone.attention()[0]
        yield HeadView(
            layer=entry.layer,
            head=entry.head,
            tokens=heads.tokens,
            windows=shown.count,
            query_heads=shown.query_heads,
            causal=causal,
            grid=layout,
            attention=_rows(attention, alone, query),
            one_query=query,
            block=None if is_picture else _block(attention),
            eigenvalues=tuple(eigenvalues[eigenvalues.isfinite()].tolist()),
            bound=bounds[place] if np.isfinite(bounds[place]) else None,
            cosines=() if found is None else tuple(sorted(found.cosines.tolist(), reverse=True)),
            columns=None if found is None else _columns(found),
            problem=problem,
        )


def _before(heads: Heads, layout: tuple[int, int]) -> int:
    return heads.tokens - layout[0] * layout[1]


def _one_query(heads: Heads, query_heads: int, is_missing: bool) -> int | None:
    """The token that sees everything under a causal mask, the last one; else the first, which stands for the input."""
    if is_missing:
        return None
    return heads.query.shape[1] // query_heads - 1 if heads.causal else 0


def _rows(attention: Float[Tensor, "queries tokens"], head: Heads, query: int | None) -> QuantisedRows:
    """The mean over the queries that see a key, which under a causal mask are fewer for later keys; and one query."""
    total = attention.sum(dim=0)
    repeats = len(attention) // head.tokens  # of the mask, where heads share their keys
    mean = total / len(attention) if head.seen is None else total / (repeats * head.seen[0].sum(dim=0).clamp_min(1))
    rows = [mean]
    return _quantised(torch.stack(rows if query is None else [*rows, attention[query]]), low=0.0)


def _block(attention: Float[Tensor, "queries tokens"]) -> QuantisedRows:
    return _quantised(attention[:BLOCK_TOKENS, :BLOCK_TOKENS], low=0.0)


def _columns(found: MatchedColumns) -> QuantisedRows:
    """The best pairs: a row of values, and one of predicted values."""
    best = torch.argsort(found.cosines, descending=True, stable=True)[:PAIRS]
    return _quantised(torch.stack([found.values[best], found.predicted[best]], dim=1).flatten(0, 1))


def _quantised(rows: Tensor, low: float | None = None) -> QuantisedRows:
    return QuantisedRows.of(rows.double().nan_to_num().numpy(force=True), low)


def patch_grid(height: int, width: int) -> Grid:
    """How tokens of a picture of this size are laid out: as square patches, after at most a few other tokens."""
    return partial(_patches, height, width)


#: Class, distillation and register tokens before the patches.
_MOST_OTHERS = 16


def _patches(height: int, width: int, tokens: int) -> tuple[int, int] | None:
    for others in range(min(_MOST_OTHERS, tokens - 1) + 1):
        rows = max(1, round(float(np.sqrt((tokens - others) * height / width))))
        columns = (tokens - others) // rows
        if rows * columns == tokens - others and height % rows == 0 and height * columns == width * rows:
            return rows, columns
    return None
