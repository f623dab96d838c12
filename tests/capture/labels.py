"""Captured heads by label, and the attention matrix of one head: what tests of capture compare."""

from typing import NamedTuple

import torch
from torch import Tensor


class Label(NamedTuple):
    """`layer` counts the captured layers in the order they ran; `input` is a position in the batch."""

    layer: int
    input: int
    window: int
    head: int


class Head(NamedTuple):
    """One captured head; its tensors have no axis of heads."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scale: Tensor
    bias: Tensor | None = None
    softcap: float | None = None
    sink: Tensor | None = None


def by_label(result):
    """Every captured head under its label, which must be unique."""
    numbers = sorted({entry.layer for heads in result.layers for entry in heads.index})
    found = {}
    for heads in result.layers:
        for place, entry in enumerate(heads.index):
            label = Label(numbers.index(entry.layer), int(entry.input.split("-")[1]), entry.window, entry.head)
            assert label not in found, f"{label} occurs twice"
            rest = (None if part is None else part[place] for part in (heads.bias,))
            tensors = (getattr(heads, name)[place] for name in ("query", "key", "value", "output", "scale"))
            sink = None if heads.sink is None else heads.sink[place]
            found[label] = Head(*tensors, *rest, heads.softcap, sink)
    return found


def attention_matrix(head):
    """softmax(QKᵀ·scale + bias) of one head, with softcap and sink; the sink's own column is left out."""
    logits = head.query.double() @ head.key.double().mT * head.scale.double()
    if head.softcap is not None:
        logits = head.softcap * torch.tanh(logits / head.softcap)
    if head.bias is not None:
        logits = logits + head.bias.double()
    if head.sink is not None:
        column = head.sink.double().expand(len(logits))[:, None]
        logits = torch.cat((logits, column), dim=1)
    return torch.softmax(logits, dim=-1)[:, : len(head.key)]


def scrambled(model, spread=0.2):
    """The model with noise on every parameter: no bias is zero, and no attention matrix is nearly uniform."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += spread * torch.randn(parameter.shape, generator=generator)
    return model.eval()
