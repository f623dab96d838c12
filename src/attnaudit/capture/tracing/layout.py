"""Which axis of logits is which, and which heads a product with values computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import NotCapturable, NotValues, Places
from attnaudit.capture.tracing.forms import NO_PRODUCT, Fact, Product, Scaled, Softmax
from attnaudit.capture.tracing.labels import BLANK, LOST, Labels, Move, varies
from attnaudit.capture.tracing.unit_inputs import of_whole_units

_OTHER_AXIS = "its weights are multiplied by values along another axis than its softmax runs over"
_ACROSS_INPUTS = "it attends across the inputs of a batch"
_SEVERAL_INPUTS = "its keys belong to several inputs of the batch: capture one input at a time"
_OVER_CHANNELS = "it attends over channels instead of tokens (cross-covariance attention)"
_OVER_TOKENS = "its queries and keys are multiplied token by token, and not feature by feature"
_OVER_QUERIES = "its softmax runs over queries instead of keys (as in slot attention)"
_MIXED_HEADS = "its attention weights are mixed across heads after the softmax (talking heads)"


@dataclass(frozen=True)
class Side:
    """Queries or keys as a product has them, (batch, rows, dim), and what is known of them."""

    tensor: Tensor
    fact: Fact | None
    move: Move | None = None

    def label(self, name: str) -> Tensor | None:
        """A label of the tensor, if it is known; `move` makes it out of that of the fact."""
        label = None if self.fact is None else self.fact.label(name)
        label = label if label is None or self.move is None else self.move(label)
        if label is None or label.shape != self.tensor.shape:
            return None
        return of_whole_units(label) if name == "sample" else label

    @property
    def scale(self) -> float:
        """The number that they were multiplied by."""
        return taken_out(self.fact)

    @property
    def from_input(self) -> bool:
        """Whether they depend on the input."""
        return self.fact is not None and self.fact.activation

    def check_inputs(self) -> None:
        """Tokens and features of a unit must belong to one input."""
        sample = self.label("sample")
        if sample is None or not (varies(sample, -2) or varies(sample, -1)):
            return
        keys = sample.flatten(0, -3)[0, :, 0]
        each = len(torch.unique(keys)) == len(keys)
        raise NotCapturable(_ACROSS_INPUTS if each else _SEVERAL_INPUTS)

    def check_features(self) -> None:
        """The axis that is summed over must be one of features."""
        row, column = self.label("row"), self.label("column")
        if row is not None and column is not None and varies(row, -1) and not varies(column, -1):
            raise NotCapturable(_OVER_CHANNELS if varies(column, -2) else _OVER_TOKENS)


def input_of(samples: Sequence[Tensor | None]) -> Tensor | None:
    """The inputs that units belong to, from labels of their queries, keys and values; None if there are none.

    All are lost where elements may have changed places in a way that cannot be followed.
    """
    known = [sample for sample in samples if sample is not None]
    if any(bool((sample == LOST).any()) for sample in known):
        return torch.full_like(known[0], LOST)
    if not known:
        return None
    found = known[0]
    for sample in known[1:]:
        found = torch.where(found == BLANK, sample, found)
    inputs = torch.unique(found[found != BLANK])
    if len(inputs) > 1 and bool((found == BLANK).any()):
        return torch.full_like(found, LOST)
    return torch.where(found == BLANK, inputs, found) if len(inputs) == 1 else found


def told_apart(places: Places, key_row: Tensor | None, units: Tensor, number: Tensor) -> Places:
    """Places in which the queries of heads have their number along the axis of heads, if columns are not enough.

    The rows of their queries are unknown. If they share columns, keys and the place `units` along all other axes, they
    are no windows: their queries come from several projections, as from those of experts.
    """
    known = [places.query, places.key, places.value, key_row, units]
    if places.query is None or key_row is None:
        return places
    kinds = torch.unique(torch.stack([label for label in known if label is not None]), dim=1).shape[1]
    return places if kinds == len(units) else replace(places, query=number)


def taken_out(fact: Fact | None) -> float:
    """The number by which a tensor was multiplied since it was projected."""
    form = None if fact is None else fact.form
    if isinstance(form, Scaled):
        return form.scale
    plain = isinstance(form, Product) and form.factor is None and form.softcap is None
    return form.scale if plain and isinstance(form, Product) else 1.0


@dataclass(frozen=True)
class LogitLayout:
    """The axes of the input of a softmax: `keys` is the one it runs over, `queries` (if any) that of the queries."""

    shape: tuple[int, ...]
    keys: int
    queries: int | None
    batch: Tensor
    query_rows: Tensor
    key_rows: Tensor
    query: Side
    key: Side

    @property
    def rest(self) -> list[int]:
        """Axes of inputs, windows and heads."""
        return [axis for axis in range(len(self.shape)) if axis not in (self.keys, self.queries)]

    @property
    def count(self) -> int:
        """The number of queries."""
        return 1 if self.queries is None else self.shape[self.queries]


@dataclass(frozen=True)
class Units:
    """The heads that a product with values computes, and where their queries, keys and outputs are.

    `coordinates` are places along the axes `rest` of a layout, `group` along the batch of the product, `order` sorts
    its rows by unit and query, and `columns` are the keys in the order of the values.
    """

    coordinates: Mapping[int, Int[Tensor, "units"]]
    group: Int[Tensor, "units"]
    order: Int[Tensor, "rows"]
    columns: Int[Tensor, "tokens"]

    def index(self, layout: LogitLayout, queries: Tensor | None, keys: Tensor | None) -> tuple[Tensor, ...]:
        """An index into a tensor of the layout's shape, for these queries and keys of every unit, or the first."""
        place = {axis: own[:, None] for axis, own in self.coordinates.items()}
        queries, keys = (torch.full((len(self.group), 1), 0) if own is None else own for own in (queries, keys))
        return tuple(
            keys if axis == layout.keys else queries if axis == layout.queries else place[axis]
            for axis in range(len(layout.shape))
        )


def layout_of(softmax: Softmax, product: Product, labels: Labels | None) -> LogitLayout:
    """Which axis of the logits is which, from the labels of the product that they are."""
    found = [None if labels is None else labels.get(name) for name in ("batch", "row", "column")]
    batch, row, column = found
    if batch is None or row is None or column is None:
        raise NotCapturable(NO_PRODUCT)
    axis, left = softmax.axis, Side(product.left, product.left_fact)
    right = Side(product.right.mT, product.right_fact, lambda label: label.mT)
    queries, keys, sides = row, column, (left, right)
    if varies(row, axis) and not varies(column, axis):
        queries, keys, sides = column, row, (right, left)
    if varies(batch, axis) or varies(queries, axis):
        raise NotCapturable("its softmax does not run over the keys")
    free = [
        other
        for other, length in enumerate(softmax.shape)
        if other != axis and not varies(batch, other) and (length == 1 or varies(queries, other))
    ]
    if len(free) > 1:
        free = _not_heads(free, sides[0], batch.select(axis, 0), queries.select(axis, 0), axis) or free
    return LogitLayout(softmax.shape, axis, free[-1] if free else None, batch, queries, keys, *sides)


def _not_heads(free: list[int], query: Side, batch: Tensor, rows: Tensor, axis: int) -> list[int]:
    """Axes along which the columns of the query projection stay the same: the others are heads."""
    column = query.label("column")
    if column is None:
        return free
    column = column[batch, rows, 0].unsqueeze(axis)
    return [other for other in free if not varies(column, other)]


def units_of(layout: LogitLayout, weights: Side, value: Side) -> Units:
    """Sort the rows of the weights, (batch, rows, tokens), by unit and query."""
    places = {axis: weights.label(str(axis)) for axis in range(len(layout.shape))}
    others = {axis: label for axis, label in places.items() if axis != layout.keys and label is not None}
    keys = places[layout.keys]
    if keys is None or len(others) != len(places) - 1:
        raise NotCapturable("its weights are rearranged in a way that cannot be followed")
    if varies(keys, 0) or varies(keys, 1) or any(varies(label, 2) for label in others.values()):
        if layout.queries is not None and varies(others[layout.queries], 2):
            raise NotCapturable(_OVER_QUERIES)
        over_heads = any(varies(others[axis], 2) for axis in layout.rest)
        if over_heads and value.from_input:
            raise NotValues
        raise NotCapturable(_MIXED_HEADS if over_heads else _OTHER_AXIS)
    groups, rows = keys.shape[:2]
    at = {axis: label[:, :, 0].reshape(-1) for axis, label in others.items()}
    unit = torch.arange(groups)[:, None].expand(groups, rows).reshape(-1)
    group = unit
    for axis in layout.rest:
        unit = unit * layout.shape[axis] + at[axis]
    query = torch.zeros_like(unit) if layout.queries is None else at[layout.queries]
    order = torch.argsort(unit * layout.count + query, stable=True)
    if len(order) % layout.count or not torch.equal(
        query[order].view(-1, layout.count), torch.arange(layout.count).expand(len(order) // layout.count, -1)
    ):
        raise NotCapturable("only some of its queries get an output")
    first = order.view(-1, layout.count)[:, 0]
    return Units({axis: at[axis][first] for axis in layout.rest}, group[first], order, keys[0, 0])
