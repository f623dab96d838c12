"""Record a forward pass: which module runs, and which attention it computes."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attnaudit.capture.argument_tensors import ArgumentTensors
from attnaudit.capture.attention_call import AttentionCall, Refusal
from attnaudit.capture.tracing.forms import Softmax
from attnaudit.capture.tracing.tracer import Tracer
from attnaudit.errors import first_line


@dataclass
class _RunningModule:
    """A module whose forward is running, and its last attention call, kept only for modules with `last_call_counts`."""

    name: str
    module: nn.Module
    execution: int
    last_call: AttentionCall | None = None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation that torch runs; no part of the model is replaced, patched or re-implemented.

    `on_call` receives the layer's name and each attention call while the model runs, in the order of the calls, so the
    caller may keep, reduce or drop the tensors at once.

    A module may set three attributes: `last_call_counts`, if it attends several times and only the last call makes its
    output (RPC-Attention), `not_softmax`, the reason why it cannot be captured, and `windows_kept`, how many windows of
    an input are enough, if it attends in many.
    """

    def __init__(self, model: nn.Module, on_call: Callable[[str, AttentionCall], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refusals: list[Refusal] = []
        self.others: tuple[Refusal, ...] = ()
        self._model = model
        self._on_call = on_call
        self._running: list[_RunningModule] = []
        self._elsewhere: Counter[int] = Counter()  # how many modules are running in other threads, by thread
        self._seen: list[AttentionCall] = []
        self._tracer = Tracer(lambda: self._layer, self._seen.append, self._refuse_call)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled while it records, and to skip the compiler takes time at every operation

    supports_higher_order_operators = True  # those that call others, such as flex_attention, run as they are

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation unchanged, then look at it."""
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            # It applies a function of the model's own to the scores, out of sight.
            self._refuse_call(f"it runs {func}, which cannot be looked into: choose another implementation")
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        try:
            self._tracer.observe(func, args, kwargs, result)
        except Exception as error:  # there is no end to what models do, and none of it may end the run
            self._refuse_call(f"{func} could not be followed ({type(error).__name__}: {first_line(error)})")
        while self._seen:
            self._deliver(self._seen.pop())
        return result

    def _deliver(self, call: AttentionCall) -> None:
        """Pass a call to `on_call`: at once, or, in a module with `last_call_counts`, when the module has finished."""
        if self._running:
            running = self._running[-1]
            kept = getattr(running.module, "windows_kept", None)
            call = replace(call, windows_kept=kept, execution=running.execution)
        layer = self._repeating
        if layer is not None:
            layer.last_call = call
        else:
            self._on_call(self._layer, call)

    def _refuse_call(self, reason: str) -> None:
        """An attention that cannot be captured; it discards earlier calls of its module, which made no output."""
        layer = self._repeating
        if layer is not None:
            layer.last_call = None
        self.refuse(self._layer, reason)

    def refuse(self, layer: str, reason: str) -> None:
        """Note that a layer is not captured; each reason is kept once."""
        refusal = Refusal(layer, reason)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def settle(self) -> None:
        """Account for every softmax that ran: what was not captured is refused, or is no attention."""
        others = []
        for softmax in self._tracer.softmaxes:
            if softmax.settled:
                continue
            if softmax.applied or softmax.content or softmax.reason or softmax.changed:
                self.refuse(softmax.layer, _why(softmax))
            else:
                others.append(Refusal(softmax.layer, f"a softmax over {softmax.shape} that is no attention"))
        self.others = tuple(dict.fromkeys(others))

    def _enter_elsewhere(self, name: str) -> None:
        """A module runs in another thread, whose operations nobody sees: those inside it are not named, too."""
        thread = threading.get_ident()
        if not self._elsewhere[thread]:
            self.refuse(name, "it runs in another thread, where attention is not seen: let the model use one thread")
        self._elsewhere[thread] += 1

    def _leave_elsewhere(self, output: Any, inputs: int) -> None:
        """What another thread made depends on the input, too."""
        self._elsewhere[threading.get_ident()] -= 1
        for tensor in output if isinstance(output, (tuple, list)) else (output,):
            if isinstance(tensor, Tensor):
                self._tracer.start(tensor, inputs)

    @property
    def _layer(self) -> str:
        return self._running[-1].name if self._running else "(outside any module)"

    @property
    def _repeating(self) -> _RunningModule | None:
        return next((r for r in self._running if getattr(r.module, "last_call_counts", False)), None)

    @contextmanager
    def recording(self, tensors: ArgumentTensors, inputs: int) -> Iterator[None]:
        """Record inside this block; afterwards the model has none of our hooks, even if its forward failed."""

        def enter(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
                if threading.get_ident() == thread:
                    self._running.append(_RunningModule(name, module, next(executions)))
                else:
                    self._enter_elsewhere(name)

            return hook

        def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if threading.get_ident() != thread:
                self._leave_elsewhere(output, inputs)
                return
            done = self._running.pop()
            if done.last_call is not None:
                with torch.utils._python_dispatch._disable_current_modes():
                    self._on_call(done.name, done.last_call)
            reason = getattr(module, "not_softmax", None)
            if reason is not None:
                self.refuse(done.name, reason)

        handles = []
        thread, executions = threading.get_ident(), itertools.count()
        fast_path = torch.backends.mha.get_fastpath_enabled()
        try:
            for name, module in self._model.named_modules():
                if isinstance(module, torch.jit.ScriptModule):
                    continue  # it takes no hooks; its operations count to the module that calls it
                handles.append(module.register_forward_pre_hook(enter(name or type(module).__name__)))
                # always_call: a model may catch a module's error and continue
                handles.append(module.register_forward_hook(leave, always_call=True))
            torch.backends.mha.set_fastpath_enabled(False)  # a kernel for a whole encoder layer, without its heads
            with _operation_by_operation(), self:
                for tensor in tensors.others:
                    self._tracer.start(tensor, None)
                for number, tensor in enumerate(tensors.batched):
                    self._tracer.start(tensor, inputs, number)
                yield
        finally:
            self._tracer.forget()
            torch.backends.mha.set_fastpath_enabled(fast_path)
            for handle in handles:
                handle.remove()


@contextmanager
def _operation_by_operation() -> Iterator[None]:
    """Nothing is compiled, fused or kept for gradients, so that every operation is dispatched."""
    with (
        torch.inference_mode(False),
        torch.no_grad(),
        _without_compiler(),
        torch.jit.optimized_execution(False),  # type: ignore[attr-defined]
    ):
        yield


def _without_compiler() -> AbstractContextManager[object]:
    """Nothing can have been compiled if the compiler is not imported, which takes a second."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


def _why(softmax: Softmax) -> str:
    """Why a softmax that has to do with attention was not captured."""
    if softmax.shape[softmax.axis] == 1:
        return "it has a single key, which gets all of the weight whatever its queries"
    return softmax.reason or softmax.changed or "its attention weights are not multiplied by values"
