"""Model and inputs in, every attention head out, with a certificate that it is what the model computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.capture.heads import HeadId, Heads
from attnaudit.capture.record import AttentionCall, Refusal
from attnaudit.capture.recorder import Recorder
from attnaudit.errors import CaptureError, InputError
from attnaudit.notebook import html_table

#: What a model is called with, batch first: a tensor, positional arguments, or keyword arguments.
Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]

#: Largest replay error, relative to the largest output of the layer, that a capture may have.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


@dataclass(frozen=True)
class Certificate:
    """Per layer name: the replay error max|softmax(QKᵀ·scale + bias)V - output| / max|output|."""

    errors: Mapping[str, float]
    tolerance: float

    @property
    def worst(self) -> float:
        """The largest replay error of all layers."""
        return max(self.errors.values())


@dataclass(frozen=True)
class Transcript:
    """What is known of a forward pass beside its heads: the layers, in the order they ran, and those refused.

    Layers are numbered as they run; the numbers that captured ones, `layer_names` by number, leave free are those of
    the refused.
    """

    layer_names: Mapping[int, str]
    certificate: Certificate
    refusals: tuple[Refusal, ...]

    @property
    def refused_numbers(self) -> dict[str, int]:
        """The number of each refused layer."""
        free = (number for number in itertools.count() if number not in self.layer_names)
        return {refusal.layer: number for refusal, number in zip(self.refusals, free, strict=False)}

    def require_heads(self, model_name: str) -> None:
        """Fail unless a layer was captured.

        Raises:
            CaptureError: none was.
        """
        if not self.layer_names:
            why = "; ".join(f"{r.layer}: {r.reason}" for r in self.refusals[:4]) or "it calls no attention at all"
            raise CaptureError(f"No attention layer of {model_name} can be captured ({why}).")


@dataclass(frozen=True)
class Capture:
    """Everything one forward pass left: a `Heads` per layer, in the order the layers ran."""

    layers: tuple[Heads, ...]
    layer_names: tuple[str, ...]
    certificate: Certificate
    refusals: tuple[Refusal, ...] = field(default=())

    @property
    def heads(self) -> Heads:
        """All layers as one batch; layers of different shape raise `ShapeError`."""
        return Heads.cat(self.layers)

    def __repr__(self) -> str:
        refused = f", {len(self.refusals)} refused" if self.refusals else ""
        count = sum(len(heads) for heads in self.layers)
        return f"Capture({len(self.layers)} layers{refused}, {count} heads, replay error {self.certificate.worst:.1e})"

    def _repr_html_(self) -> str:
        caption = f"Capture: replay error {self.certificate.worst:.1e}"
        captured = [(name, repr(heads)) for name, heads in zip(self.layer_names, self.layers, strict=True)]
        return html_table(
            caption, captured + [(refusal.layer, f"refused: {refusal.reason}") for refusal in self.refusals]
        )


def capture(
    model: nn.Module,
    inputs: Inputs,
    names: Sequence[str] | None = None,
    *,
    model_name: str | None = None,
) -> Capture:
    """Run `model` once on `inputs` and return every attention head.

    Args:
        model: any torch module; it runs in evaluation mode and is bit-identical afterwards.
        inputs: what the model is called with: a tensor, a tuple of arguments, or a mapping of keyword arguments; batch
            first.
        names: one name per input, `input-0`, `input-1`, … by default.
        model_name: how the heads are labelled, the class name by default.

    Raises:
        CaptureError: no layer could be captured; the message names layers and reasons. A layer that cannot be
            captured beside others that can, or whose replay error is above `TOLERANCE`, is in `Capture.refusals`.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile keeps the module it wraps here
    names = tuple(names) if names is not None else tuple(f"input-{i}" for i in range(batch_size(inputs)))
    model_name = model_name or type(model).__name__
    layers: list[Heads] = []
    with evaluating(model):
        seen = capture_each(model, inputs, names, layers.append, model_name=model_name)
    seen.require_heads(model_name)
    # Handed over, not shared: recorder and collector hold each other, so what they reach outlives its use.
    kept = tuple(layers)
    layers.clear()
    return Capture(kept, tuple(seen.layer_names.values()), seen.certificate, seen.refusals)


def capture_each(
    model: nn.Module, inputs: Inputs, names: Sequence[str], on_layer: Callable[[Heads], None], *, model_name: str
) -> Transcript:
    """Run `model` once, in the mode it is in, and hand over every layer as soon as it has run: none is kept."""
    batch = batch_size(inputs)
    if len(names) != batch:
        raise InputError(f"{len(names)} names were given for a batch of {batch} inputs.")
    collector = _Collector(model, names, model_name, on_layer)
    with collector.recorder.watching():
        if isinstance(inputs, Mapping):
            model(**inputs)
        else:
            model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return collector.finish()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; each module's own mode afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


class _Collector:
    """Turns attention calls into labelled `Heads` while the model runs."""

    def __init__(
        self, model: nn.Module, names: Sequence[str], model_name: str, on_layer: Callable[[Heads], None]
    ) -> None:
        self.recorder = Recorder(model, self._collect)
        self._on_layer = on_layer
        self._names = names
        self._model_name = model_name
        self._prefix_tokens = int(getattr(model, "num_prefix_tokens", 0))
        self._errors: dict[str, float] = {}
        self._layers: dict[int, str] = {}
        self._tolerance = 0.0

    def _collect(self, layer: str, call: AttentionCall) -> None:
        flat = _flatten(call, len(self._names))
        if flat is None:
            shape = tuple(call.query.shape)
            self.recorder.refuse(layer, f"its batch axis {shape} does not line up with {len(self._names)} inputs")
            return
        index, tensors = flat
        number = len(self._errors) + len(self.recorder.refusals)
        heads = Heads(
            **tensors,
            index=tuple(
                HeadId(self._model_name, self._names[place], number, head, window) for place, window, head in index
            ),
            prefix_tokens=self._prefix_tokens,
        )
        error = _replay_error(heads) if call.error is None else call.error
        tolerance = _tolerance(heads)
        if not error <= tolerance:
            self.recorder.refuse(
                layer,
                f"it is not softmax(QKᵀ·scale + bias)V: replaying it differs from the model by {error:.1e}, "
                f"more than {tolerance:.0e}",
            )
            return
        while layer in self._errors:  # a layer with shared weights runs several times
            layer += "'"
        self._errors[layer] = error
        self._layers[number] = layer
        self._tolerance = max(self._tolerance, tolerance)
        self._on_layer(heads)

    def finish(self) -> Transcript:
        certificate = Certificate(self._errors, self._tolerance)
        return Transcript(self._layers, certificate, tuple(self.recorder.refusals))


def _flatten(call: AttentionCall, inputs: int) -> tuple[list[tuple[int, int, int]], dict[str, Any]] | None:
    """All heads of a call along one axis, and each head's (input, window, head)."""
    query = call.query
    heads = query.shape[-3] if query.dim() > 3 else query.shape[0] // max(inputs, 1)
    rows = query.shape[:-2].numel() // heads if heads else 0
    if rows == 0 or rows % inputs:
        return None
    windows = rows // inputs
    shape = (rows, heads) if query.dim() <= 3 else (*query.shape[:-3], heads)
    index = [(row // windows, row % windows, head) for row in range(rows) for head in range(heads)]

    def flat(tensor: Tensor) -> Tensor:
        # A copy: the model may go on to change its own tensors in place.
        return tensor.detach().reshape(rows * heads, *tensor.shape[-2:]).clone()

    bias = call.bias
    if bias is not None:
        full = (*shape, query.shape[-2], call.key.shape[-2])
        bias = flat(bias.reshape(full) if bias.numel() == torch.Size(full).numel() else bias.expand(full))
    scale = torch.as_tensor(call.scale, dtype=query.dtype, device=query.device)
    if scale.dim():
        scale = scale.reshape(*scale.shape[:-2]).expand(shape).reshape(-1)
    tensors = {
        "query": flat(query),
        "key": flat(call.key),
        "value": flat(call.value),
        "output": flat(call.output),
        "scale": scale.expand(rows * heads).clone(),
        "bias": bias,
        "source": _source(call, rows),
    }
    return index, tensors


def _source(call: AttentionCall, rows: int) -> Tensor | None:
    """What the layer was given, if it has the rows and tokens of the keys (cross-attention has not)."""
    source = call.source
    fits = source is not None and source.shape[:2] == (rows, call.key.shape[-2])
    return source.detach().clone() if source is not None and fits else None


def _tolerance(heads: Heads) -> float:
    return TOLERANCE.get(heads.key.dtype, 1e-4)


def _replay_error(heads: Heads) -> float:
    exact = heads.to(torch.float64) if heads.key.dtype == torch.float64 else heads.to(torch.float32)
    difference = (exact.replayed() - exact.output).abs().amax()
    return (difference / exact.output.abs().amax().clamp_min(torch.finfo(exact.output.dtype).tiny)).item()


def batch_size(inputs: Inputs) -> int:
    """How many inputs a batch has: the first axis of its first tensor."""
    parts = (inputs,) if isinstance(inputs, Tensor) else inputs.values() if isinstance(inputs, Mapping) else inputs
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if not tensors or tensors[0].dim() == 0 or tensors[0].shape[0] == 0:
        raise InputError("The inputs hold no tensor with a batch axis: pass a tensor, a tuple or a mapping of them.")
    return tensors[0].shape[0]
