"""Record a forward pass: which module runs, and which attention calls it makes."""

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
from attnaudit.capture.attention_call import AttentionCall, Refusal
from attnaudit.capture.eager import EagerAttention, Unsupported


@dataclass
class _RunningModule:
    """A module whose forward is running, its input if that is (batch, tokens, width), and its last attention call.

    The call is kept only for modules with `last_call_counts`.
    """

    name: str
    module: nn.Module
    input: Tensor | None
    last_call: AttentionCall | None = None


class Recorder(TorchFunctionMode):
    """Intercepts torch functions; no part of the model is replaced, patched or re-implemented.

    `on_call` receives the layer's name and each attention call while the model runs, in the order of the calls, so the
    caller may keep, reduce or drop the tensors at once.

    A module may set two attributes: `last_call_counts`, if it attends several times and only the last call makes its
    output (RPC-Attention), and `not_softmax`, the reason why it cannot be captured.
    """

    def __init__(self, model: nn.Module, on_call: Callable[[str, AttentionCall], None]) -> None:
        super().__init__()
        self.refusals: list[Refusal] = []
        self._model = model
        self._on_call = on_call
        self._eager = EagerAttention()
        self._running: list[_RunningModule] = []
        self._enabled = True

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the call unchanged, then inspect it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._enabled:
            return result
        try:
            call = self._recognise(func, args, kwargs, result)
        except fused.NotCapturable as reason:
            call = Unsupported(str(reason))
        if isinstance(call, AttentionCall) and self._over_channels(call):
            call = Unsupported("it attends over channels instead of tokens (cross-covariance attention)")
        if isinstance(call, Unsupported):
            self._deliver(None)
            self.refuse(self._layer, call.reason)
        elif call is not None:
            self._deliver(replace(call, source=self._layer_input))
        return result

    def _deliver(self, call: AttentionCall | None) -> None:
        """Pass a call to `on_call`: at once, or, in a module with `last_call_counts`, when the module has finished.

        None is a call that cannot be captured; it discards the module's earlier calls, which did not make its output.
        """
        layer = next((r for r in self._running if getattr(r.module, "last_call_counts", False)), None)
        if layer is not None:
            layer.last_call = call
        elif call is not None:
            self._on_call(self._layer, call)

    def refuse(self, layer: str, reason: str) -> None:
        """Note that a layer is not captured; each reason is kept once."""
        refusal = Refusal(layer, reason)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def _recognise(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> AttentionCall | Unsupported | None:
        if func is F.scaled_dot_product_attention:
            return fused.scaled_dot_product(args, kwargs, result)
        if func is F.multi_head_attention_forward:
            return fused.multi_head(args, kwargs, result)
        return self._eager.observe(func, args, kwargs, result)

    @property
    def _layer(self) -> str:
        return self._running[-1].name if self._running else "(outside any module)"

    def _over_channels(self, call: AttentionCall) -> bool:
        """Whether the scores are channels x channels of the innermost module whose input is (batch, tokens, width)."""
        source = self._layer_input
        if source is None or call.query.dim() < 4:
            return False
        rows, columns, heads = call.query.shape[-2], call.key.shape[-2], call.query.shape[-3]
        return source.shape[1] not in (rows, columns) and rows == columns and rows * heads == source.shape[2]

    @property
    def _layer_input(self) -> Tensor | None:
        """The input of the innermost running module whose input is (batch, tokens, width)."""
        return next((running.input for running in reversed(self._running) if running.input is not None), None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record inside this block; afterwards the model has none of our hooks, even if its forward failed."""

        def enter(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
                first = args[0] if args else None
                source = first if isinstance(first, Tensor) and first.dim() == 3 else None
                self._running.append(_RunningModule(name, module, source))

            return hook

        def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            done = self._running.pop()
            if done.last_call is not None:
                self._enabled = False  # what `on_call` computes is not part of the model
                try:
                    self._on_call(done.name, done.last_call)
                finally:
                    self._enabled = True
            reason = getattr(module, "not_softmax", None)
            if reason is not None:
                self.refuse(done.name, reason)

        handles = []
        for name, module in self._model.named_modules():
            handles.append(module.register_forward_pre_hook(enter(name or type(module).__name__)))
            # always_call: a model may catch a module's error and continue
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            with torch.no_grad(), self:
                yield
        finally:
            for handle in handles:
                handle.remove()
