"""Put queries, keys, values and outputs together, unit by unit, when weights are multiplied by values."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall, NotCapturable, Places, ValueSource
from attnaudit.capture.tracing.forms import Fact, Product, Softmax, Weights
from attnaudit.capture.tracing.joining import SINK
from attnaudit.capture.tracing.labels import copy, is_same_along, narrowed, taken, varies
from attnaudit.capture.tracing.layout import LogitLayout, Side, Units, input_of, layout_of, told_apart, units_of
from attnaudit.capture.tracing.products import Factors
from attnaudit.capture.tracing.token_places import token_places
from attnaudit.numerics.masks import HIDDEN


def attention_of(
    weights: Weights, factors: Factors, left: Fact | None, right: Fact | None, weights_left: bool, result: Tensor
) -> AttentionCall:
    """The attention that a product of weights and values completes.

    Raises:
        NotCapturable: it is not of the known form; the message says why.
    """
    softmax, product = weights.softmax, weights.product
    if softmax.reason is not None or product is None:
        raise NotCapturable(softmax.reason or softmax.otherwise)
    if factors.adds:
        raise NotCapturable("something is added to its output inside the product with its values")
    first = Side(factors.left_batched(factors.left), left, factors.left_batched)
    second = Side(factors.right_batched(factors.right).mT, right, lambda label: factors.right_batched(label).mT)
    output = result[None, :, None] if factors.vector else factors.left_batched(result)
    if weights_left:
        applied, value = first, replace(second, tensor=second.tensor.mT, move=factors.right_batched)
    else:
        applied, output = second, output.mT
        value = Side(first.tensor.mT, left, lambda label: factors.left_batched(label).mT)
    layout = layout_of(softmax, product, weights.labels)
    if layout.query.from_input and not layout.key.from_input:
        raise NotCapturable("its keys are parameters, and not tokens")
    layout.key.check_inputs()
    layout.query.check_features()
    units = units_of(layout, applied, value)
    return _call(softmax, product, layout, units, value, output / factors.alpha if factors.alpha != 1 else output)


def _call(
    softmax: Softmax, product: Product, layout: LogitLayout, units: Units, value: Side, output: Tensor
) -> AttentionCall:
    device, count = output.device, layout.count
    queries = torch.arange(count).expand(len(units.group), -1)
    batch = layout.batch[units.index(layout, None, None)][:, 0]
    query_rows = layout.query_rows[units.index(layout, queries, None)]
    if _is_linear_layer(layout, query_rows):
        raise NotCapturable("its scores come from a linear layer, and not from queries and keys")
    key_rows = layout.key_rows[units.index(layout, None, units.columns[None, :])]
    all_columns = layout.key_rows[units.index(layout, None, torch.arange(layout.shape[layout.keys])[None, :])][0]
    sinks = torch.nonzero(all_columns == SINK)[:, 0]
    if bool((key_rows == SINK).any()):
        raise NotCapturable("its sink has a value")
    if len(units.columns) != layout.shape[layout.keys] - len(sinks):
        raise NotCapturable("only some of its weights are multiplied by values")
    query = _unscaled(_gathered(layout.query.tensor, batch, query_rows), layout.query.scale)
    key = _unscaled(_gathered(layout.key.tensor, batch, key_rows), layout.key.scale)
    bias, sink = _bias(softmax, product, layout, units, sinks)
    _check_dropped(product)
    scale = torch.full((len(batch),), product.scale * layout.query.scale * layout.key.scale, dtype=torch.float64)
    if product.factor is not None:
        factor = product.factor.get().expand(layout.shape)
        if any(varies(factor, axis) for axis in (layout.keys, layout.queries) if axis is not None):
            raise NotCapturable("its scores are multiplied by a number for each query or key")
        scale = scale * factor[units.index(layout, None, None)][:, 0].double().cpu()
    return AttentionCall(
        query=query,
        key=key,
        value=taken(value.tensor, units.group),
        output=taken(output.flatten(0, 1), units.order).view(-1, count, output.shape[-1]),
        from_input=any(side.from_input for side in (layout.query, layout.key, value)),
        scale=scale.to(device=device, dtype=query.dtype),
        bias=bias,
        places=_places(layout, units, batch, query_rows[:, 0], key_rows[:, 0], value),
        sink=sink,
        softcap=product.softcap,
        source=_source(value, units),
        rotated=layout.key.fact is not None and layout.key.fact.rotated,
        precision=softmax.precision,
        tokens=token_places(
            layout.query,
            layout.key,
            lambda label: label[batch[:, None], query_rows, 0],
            lambda label: label[batch[:, None], key_rows, 0],
            masked=bias is not None,
        ),
    )


def _is_linear_layer(layout: LogitLayout, rows: Int[Tensor, "units queries"]) -> bool:
    """Whether the queries are some of the columns of a weight matrix; all of them are learned queries."""
    return (
        layout.key.from_input
        and layout.query.fact is None
        and len(torch.unique(rows[0])) < layout.query.tensor.shape[1]
    )


def _gathered(tensor: Tensor, batch: Int[Tensor, "units"], rows: Int[Tensor, "units tokens"]) -> Tensor:
    """Rows of a (batch, rows, dim) tensor for every unit; a copy, since the model may change its own tensors later."""
    flat = (batch[:, None] * tensor.shape[1] + rows).flatten()
    return taken(tensor.flatten(0, 1), flat).view(*rows.shape, tensor.shape[2])


def _unscaled(tensor: Tensor, scale: float) -> Tensor:
    return tensor if scale == 1 else tensor / scale


def _bias(
    softmax: Softmax, product: Product, layout: LogitLayout, units: Units, sinks: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """What was added to the scores of every unit, and to what no key made."""
    terms = [] if product.bias is None else [product.bias.get()]
    if softmax.zeroed is not None:
        zeroed = softmax.zeroed
        terms.append(torch.zeros(zeroed.shape, device=zeroed.device).masked_fill(zeroed, -torch.inf))
    if not terms:
        return None, None
    whole = terms[0].expand(layout.shape) if len(terms) == 1 else (terms[0] + terms[1]).expand(layout.shape)
    order = (*layout.rest, *([] if layout.queries is None else [layout.queries]), layout.keys)
    whole = whole.permute(order)
    whole = _at_units(whole, [units.coordinates[axis] for axis in layout.rest])
    if layout.queries is None:
        whole = whole.unsqueeze(-2)
    size = (len(units.group), layout.count)
    columns = units.columns
    kept = whole if torch.equal(columns, torch.arange(whole.shape[-1])) else whole[..., columns.to(whole.device)]
    sink = torch.logsumexp(whole[..., sinks.to(whole.device)], dim=-1).expand(size) if len(sinks) else None
    return kept.expand(*size, len(columns)), sink


def _check_dropped(product: Product) -> None:
    """Scores that were multiplied by 0 must be hidden as well, as in `s * mask - 1e4 * (1 - mask)`."""
    if product.dropped is not None:
        hidden = torch.zeros(()) if product.bias is None else product.bias.get()
        if bool((product.dropped.get() & (hidden > HIDDEN)).any()):
            raise NotCapturable("some of its scores are multiplied by 0 before the softmax")


def _at_units(whole: Tensor, coordinates: list[Tensor]) -> Tensor:
    """The parts of a tensor (*rest, …) that belong to units; without their axis if all of them are the same."""
    if is_same_along(whole, range(len(coordinates))):
        return copy(whole[(0,) * len(coordinates)])
    small = whole
    if whole.dim() - len(coordinates) == 2 and whole.stride(-2) == 0:
        small = whole.narrow(-2, 0, 1)  # a padding mask is the same for all queries
    return small[tuple(own.to(whole.device) for own in coordinates)]


def _places(
    layout: LogitLayout, units: Units, batch: Tensor, query_row: Tensor, key_row: Tensor, value: Side
) -> Places:
    def of(side: Side, name: str, group: Tensor, row: Tensor | int) -> Tensor | None:
        label = side.label(name)
        return None if label is None else label[group, row, 0]

    samples = (
        of(layout.query, "sample", batch, query_row),
        of(layout.key, "sample", batch, key_row),
        of(value, "sample", units.group, 0),
    )
    places = Places(
        input_of(samples),
        of(layout.query, "column", batch, query_row),
        of(layout.key, "column", batch, key_row),
        of(value, "column", units.group, 0),
        layout.shape[layout.rest[-1]] if len(layout.rest) > 1 else None,
    )
    if len(layout.rest) < 2 or layout.query.label("row") is not None:
        return places
    rest = torch.zeros_like(batch)
    for axis in layout.rest[:-1]:
        rest = rest * layout.shape[axis] + units.coordinates[axis]
    return told_apart(places, of(layout.key, "row", batch, key_row), rest, units.coordinates[layout.rest[-1]])


def _source(value: Side, units: Units) -> ValueSource | None:
    """What a linear layer made the values from; None if they come from anything else."""
    layer, rows = linear_layer(value.fact), value.label("row")
    if layer is None or rows is None:
        return None
    return ValueSource(layer.left[0], rows[units.group, :, 0])


def linear_layer(fact: Fact | None) -> Product | None:
    """The product, if values are one of activations and weights, with a bias or none, and nothing else.

    A term that differs between tokens, as positions and masks do, is no bias: W_v(source) would not be the values. Nor
    are they that if the activations were overwritten since.
    """
    form = None if fact is None else fact.form
    if fact is None or not isinstance(form, Product) or form.content or len(form.left) != 1:
        return None
    changed = form.factor is not None or form.dropped is not None or form.softcap is not None or form.bias_from_input
    overwritten = form.written is not None and form.written.again
    return None if changed or overwritten or not _is_of_columns(form, fact.label("column")) else form


def _is_of_columns(product: Product, column: Tensor | None) -> bool:
    """Whether what was added to a product depends on nothing but the column of the weights."""
    if product.bias is None:
        return True
    bias = product.bias.get()
    if column is None:
        return bias.dim() <= 1
    bias = bias.expand(column.shape)
    same = [axis for axis in range(bias.dim()) if bias.stride(axis) == column.stride(axis) == 0]
    bias, column = narrowed(bias, same), narrowed(column, same).to(bias.device)  # an ordinary bias: its columns alone
    of_column = bias.new_zeros(int(column.max()) + 1)
    of_column[column.flatten()] = bias.flatten()
    return torch.equal(of_column[column], bias)
