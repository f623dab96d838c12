"""Turn attention calls into labelled `Heads`, each checked by replaying it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.capture.attention_call import AttentionCall
from attnaudit.capture.heads import Heads
from attnaudit.capture.recorder import Recorder
from attnaudit.capture.result import CaptureLog, Certificate
from attnaudit.records.head_id import HeadId

#: The largest replay error allowed in a capture, relative to the largest output of the layer.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


class Collector:
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
            self.recorder.refuse(layer, f"its query of shape {shape} does not split into {len(self._names)} inputs")
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
                f"it is not softmax(QKᵀ·scale + bias)V: the replay differs from the model by {error:.1e}, "
                f"more than {tolerance:.0e}",
            )
            return
        while layer in self._errors:  # a layer with shared weights runs several times
            layer += "'"
        self._errors[layer] = error
        self._layers[number] = layer
        self._tolerance = max(self._tolerance, tolerance)
        self._on_layer(heads)

    def finish(self) -> CaptureLog:
        """The log of the forward pass, once the model has run."""
        certificate = Certificate(self._errors, self._tolerance)
        return CaptureLog(self._layers, certificate, tuple(self.recorder.refusals))


def _flatten(call: AttentionCall, inputs: int) -> tuple[list[tuple[int, int, int]], dict[str, Any]] | None:
    """The (input, window, head) of each head of a call, and its tensors with all heads along one axis."""
    query = call.query
    heads = query.shape[-3] if query.dim() > 3 else query.shape[0] // max(inputs, 1)
    rows = query.shape[:-2].numel() // heads if heads else 0
    if rows == 0 or rows % inputs:
        return None
    windows = rows // inputs
    shape = (rows, heads) if query.dim() <= 3 else (*query.shape[:-3], heads)
    index = [(row // windows, row % windows, head) for row in range(rows) for head in range(heads)]

    def flat(tensor: Tensor) -> Tensor:
        # A copy: the model may change its own tensors in place later.
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
    """The layer's input, if its rows and tokens match the keys (in cross-attention they do not)."""
    source = call.source
    fits = source is not None and source.shape[:2] == (rows, call.key.shape[-2])
    return source.detach().clone() if source is not None and fits else None


def _tolerance(heads: Heads) -> float:
    return TOLERANCE.get(heads.key.dtype, 1e-4)


def _replay_error(heads: Heads) -> float:
    exact = heads.to(torch.float64) if heads.key.dtype == torch.float64 else heads.to(torch.float32)
    difference = (exact.replayed() - exact.output).abs().amax()
    return (difference / exact.output.abs().amax().clamp_min(torch.finfo(exact.output.dtype).tiny)).item()
