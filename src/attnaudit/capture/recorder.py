"""Watching a forward pass: which module runs, and which attention calls it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnaudit.capture import fused
from attnaudit.capture.record import AttentionCall, Refusal
from attnaudit.capture.written_out import Lost, WrittenOutAttention


@dataclass
class _Running:
    """A module whose forward is under way, what it was given, and its last attention call where only that counts."""

    name: str
    module: nn.Module
    given: Tensor | None
    last_call: AttentionCall | None = None


class Recorder(TorchFunctionMode):
    """Intercepts torch functions, never the model: nothing of it is replaced, patched or re-implemented.

    `on_call` receives the layer's name and the attention call, in the order the model makes them, while the model
    runs: a caller may keep, reduce or drop the tensors at once.

    A module may say two things about itself: `last_call_counts`, if it attends several times and only the last makes
    its output (RPC-Attention), and `not_softmax`, the reason why there is nothing to capture.
    """

    def __init__(self, model: nn.Module, on_call: Callable[[str, AttentionCall], None]) -> None:
        super().__init__()
        self.refusals: list[Refusal] = []
        self._model = model
        self._on_call = on_call
        self._written_out = WrittenOutAttention()
        self._running: list[_Running] = []
        self._looking = True

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Let the call through unchanged, then look at it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._looking:
            return result
        try:
            call = self._recognise(func, args, kwargs, result)
        except fused.NotCapturable as reason:
            call = Lost(str(reason))
        if isinstance(call, AttentionCall) and self._over_channels(call):
            call = Lost("it attends over channels instead of tokens (cross-covariance attention)")
        if isinstance(call, Lost):
            self._take(None)
            self.refuse(self._layer, call.reason)
        elif call is not None:
            self._take(replace(call, source=self._layer_input))
        return result

    def _take(self, call: AttentionCall | None) -> None:
        """Pass a call on, at once or, inside a layer of several, when the layer is done and this was its last.

        None is a call that could not be taken: what a layer did before it is then not what made its output.
        """
        layer = next((r for r in self._running if getattr(r.module, "last_call_counts", False)), None)
        if layer is not None:
            layer.last_call = call
        elif call is not None:
            self._on_call(self._layer, call)

    def refuse(self, layer: str, reason: str) -> None:
        """Note once that a layer is not captured."""
        refusal = Refusal(layer, reason)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def _recognise(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> AttentionCall | Lost | None:
        if func is F.scaled_dot_product_attention:
            return fused.scaled_dot_product(args, kwargs, result)
        if func is F.multi_head_attention_forward:
            return fused.multi_head(args, kwargs, result)
        return self._written_out.observe(func, args, kwargs, result)

    @property
    def _layer(self) -> str:
        return self._running[-1].name if self._running else "(outside any module)"

    def _over_channels(self, call: AttentionCall) -> bool:
        """Whether scores are channels x channels of the innermost module that was given (batch, tokens, width)."""
        given = self._layer_input
        if given is None or call.query.dim() < 4:
            return False
        rows, columns, heads = call.query.shape[-2], call.key.shape[-2], call.query.shape[-3]
        return given.shape[1] not in (rows, columns) and rows == columns and rows * heads == given.shape[2]

    @property
    def _layer_input(self) -> Tensor | None:
        """What the innermost running module with a (batch, tokens, width) input was given."""
        return next((running.given for running in reversed(self._running) if running.given is not None), None)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record inside this block; afterwards the model carries none of our hooks, even if its forward failed."""

        def enter(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
                first = args[0] if args else None
                given = first if isinstance(first, Tensor) and first.dim() == 3 else None
                self._running.append(_Running(name, module, given))

            return hook

        def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            done = self._running.pop()
            if done.last_call is not None:
                self._looking = False  # what becomes of the call is not the model's doing
                try:
                    self._on_call(done.name, done.last_call)
                finally:
                    self._looking = True
            reason = getattr(module, "not_softmax", None)
            if reason is not None:
                self.refuse(done.name, reason)

        handles = []
        for name, module in self._model.named_modules():
            handles.append(module.register_forward_pre_hook(enter(name or type(module).__name__)))
            # always: a model may catch the error of a part and go on
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            with torch.no_grad(), self:
                yield
        finally:
            for handle in handles:
                handle.remove()
