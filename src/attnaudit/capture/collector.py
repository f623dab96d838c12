"""Turn attention calls into labelled `Heads`, each checked by replaying it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.capture.attention_call import AttentionCall
from attnaudit.capture.heads import Heads
from attnaudit.capture.input_masks import InputMasks
from attnaudit.capture.layer_runs import LayerRun
from attnaudit.capture.padding import Known, without_padding
from attnaudit.capture.placing import Placing, placing, tells_inputs
from attnaudit.capture.recorder import Recorder
from attnaudit.capture.result import CaptureLog, Certificate
from attnaudit.capture.tracing.labels import narrowed, taken
from attnaudit.capture.traits import Traits, traits_of
from attnaudit.records.head_id import HeadId

#: The largest replay error allowed in a capture, relative to the largest output of the layer, by precision.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


class Collector:
    """Turns attention calls into labelled `Heads` while the model runs."""

    def __init__(
        self,
        model: nn.Module,
        names: Sequence[str],
        model_name: str,
        on_layer: Callable[[Heads], None],
        *,
        keep_padding: bool = False,
        masks: InputMasks,
    ) -> None:
        self.recorder = Recorder(model, self._collect)
        self._on_layer = on_layer
        self._names = names
        self._model_name = model_name
        self._keep_padding = keep_padding
        self._masks = masks
        self._prefix_tokens = int(getattr(model, "num_prefix_tokens", 0))
        self._errors: dict[str, float] = {}
        self._layers: dict[int, str] = {}
        self._runs: dict[str, LayerRun] = {}
        self._last: LayerRun | None = None
        self._traits: dict[str, Traits] = {}
        self._bias: Tensor | None = None
        self._placings: dict[Any, Placing | str] = {}
        self._tolerance = 0.0

    def _collect(self, layer: str, call: AttentionCall) -> None:
        places = self._placing(call)
        if isinstance(places, str):
            self.recorder.refuse(layer, places)
            return
        windows = places.windows
        if call.windows_kept is not None:
            places = places.thinned(call.windows_kept)
        layer, number, first = self._numbered(layer, call, places)
        whole = self._heads(call, places, number, first)
        parts = [whole] if self._keep_padding else self._without_padding(whole, call, places)
        tolerance = max(TOLERANCE.get(dtype, 1e-4) for dtype in _precisions(call))
        error = torch.tensor([_replay_error(part) for part in parts]).max().item()  # NaN if any of them is
        if not error <= tolerance:
            self.recorder.refuse(
                layer,
                "it computes NaN or infinite numbers on these inputs"
                if math.isnan(error)
                else f"it is not softmax(QKᵀ·scale + bias)V: the replay differs from the model by {error:.1e}, "
                f"more than {tolerance:.0e}",
            )
            return
        self._errors[layer] = max(error, self._errors.get(layer, 0.0))
        self._layers[number] = layer
        self._note_run(layer, number, call, places)
        padded = len(parts) > 1 or parts[0] is not whole
        self._traits[layer] = traits_of(parts[0], places.key_head_count, call.rotated, padded, windows - places.windows)
        self._tolerance = max(self._tolerance, tolerance)
        for heads in parts:
            self._on_layer(heads)

    def _numbered(self, layer: str, call: AttentionCall, places: Placing) -> tuple[str, int, int]:
        """The name and number of a layer, and the number of the first window of a call.

        Every run on the same tokens is a layer of its own, as where weights are shared.
        """
        while (known := self._runs.get(layer)) is not None:
            window = known.first_window(call, places)
            if window is not None:
                return layer, known.number, window
            layer += "'"
        return layer, len(self._errors) + len({refusal.layer for refusal in self.recorder.refusals}), 0

    def _note_run(self, layer: str, number: int, call: AttentionCall, places: Placing) -> None:
        """A call of a layer that was captured: the next one may be another window of it."""
        run = self._runs.setdefault(layer, LayerRun(number, places.heads))
        if self._last is not None and self._last is not run:
            self._last.forget()
        run.add(call, places)
        self._last = run

    def _heads(self, call: AttentionCall, places: Placing, number: int, first: int) -> Heads:
        """The units of a call that are placed, in the order of inputs, windows (from `first` on) and heads."""
        names, order = self._names, places.order
        same = torch.equal(order, torch.arange(len(call.query)))

        def sort(tensor: Tensor | None) -> Any:
            if tensor is None or same:
                return tensor
            if tensor.stride(0) == 0:  # it is the same for all units
                return tensor[: len(order)]
            return tensor[order.to(tensor.device)]

        index = zip(places.sample.tolist(), (first + places.window).tolist(), places.head.tolist(), strict=True)
        return Heads(
            query=sort(call.query),
            key=sort(call.key),
            value=sort(call.value),
            output=sort(call.output),
            scale=sort(call.scale),
            index=tuple(HeadId(self._model_name, names[own], number, head, window) for own, window, head in index),
            bias=self._shared(sort(call.bias)),
            prefix_tokens=self._prefix_tokens,
            source=_source(call, places),
            softcap=call.softcap,
            sink=sort(call.sink),
            key_heads=None if places.key_heads is None else tuple(places.key_heads.tolist()),
        )

    def _without_padding(self, heads: Heads, call: AttentionCall, places: Placing) -> list[Heads]:
        known = Known(places.sample, places.order, call.tokens, self._masks)
        return list(without_padding(heads, places.heads, known))

    def _placing(self, call: AttentionCall) -> Placing | str:
        """Which input, window and head each unit is, or why not; worked out once for layers of one form."""
        if not tells_inputs(call.places, len(self._names)):
            return placing(call, len(self._names))  # which depends on more than the form
        key = len(call.query), call.places.numbers
        if key not in self._placings:
            self._placings[key] = placing(call, len(self._names))
        return self._placings[key]

    def _shared(self, bias: Tensor | None) -> Tensor | None:
        """The bias of the layer before if this is the same: most models make one mask for all layers."""
        if bias is None or self._bias is None or not _is_same(bias, self._bias):
            self._bias = bias
        # Layers with other numbers of heads or windows may share a mask that is the same for all of them.
        return None if bias is None or self._bias is None else narrowed(self._bias, [0]).expand_as(bias)

    def finish(self) -> CaptureLog:
        """The log of the forward pass, once the model has run."""
        recorder = self.recorder
        recorder.settle()
        certificate = Certificate(self._errors, self._tolerance)
        return CaptureLog(
            self._layers, certificate, tuple(recorder.refusals), traits=self._traits, other_softmaxes=recorder.others
        )


def _precisions(call: AttentionCall) -> list[torch.dtype]:
    """The types that a call was computed in: the least precise one decides how well it can be replayed."""
    return [call.query.dtype, call.key.dtype, call.value.dtype, call.output.dtype, call.precision]


def _is_same(bias: Tensor, last: Tensor) -> bool:
    """Whether two biases have the same numbers, and the same size in memory."""
    bias, last = narrowed(bias, [0]), narrowed(last, [0])
    alike = (bias.shape, bias.dtype, bias.device) == (last.shape, last.dtype, last.device)
    return alike and torch.equal(bias, last)


def _source(call: AttentionCall, places: Placing) -> Tensor | None:
    """What the values were made from, a row for the heads of an input (and window), if all of them share it."""
    if call.source is None:
        return None
    tokens = call.source.tokens[places.order].view(-1, places.heads, call.source.tokens.shape[1])
    if not bool((tokens == tokens[:, :1]).all()):
        return None
    rows = call.source.rows
    return taken(rows, tokens[:, 0].flatten()).view(*tokens[:, 0].shape, rows.shape[1])


def _replay_error(heads: Heads) -> float:
    exact = heads.to(torch.float64) if heads.key.dtype == torch.float64 else heads.to(torch.float32)
    difference = exact.replayed().sub_(exact.output).abs_().amax()
    return (difference / exact.output.abs().amax().clamp_min(torch.finfo(exact.output.dtype).tiny)).item()
