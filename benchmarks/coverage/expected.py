"""The independent count: which attention a model runs, found below torch's Python functions.

A softmax is attention if its result becomes a factor of a matrix product, whatever views, casts, slices and masks lie
between. It shares no code with `attnaudit.capture`, and reads no names of modules or functions of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from benchmarks.coverage.case import Inputs
from benchmarks.coverage.events import Event
from benchmarks.coverage.flow import Marks, RunningModules, shape_of, tensors
from benchmarks.coverage.fused_weights import fused_weights
from benchmarks.coverage.kernels import ENTRYWISE, FUSED, MOVES, PRODUCTS, SOFTMAX
from torch import Tensor, nn
from torch.nn.attention import flex_attention
from torch.utils._python_dispatch import TorchDispatchMode

_PARAMETER, _PRODUCT = "parameter", "product"


def expected(model: nn.Module, inputs: Inputs) -> list[Event]:
    """Run the model once, in evaluation mode, and return every softmax and fused attention kernel that ran."""
    model.eval()
    with torch.no_grad(), RunningModules(model) as running:
        counter = _Counter(model, running)
        with counter, _flex_written_out():
            if isinstance(inputs, Mapping):
                model(**inputs)
            else:
                model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return counter.events


@contextmanager
def _flex_written_out() -> Iterator[None]:
    """Run flex_attention without compiling it, which torch cannot do while it is watched."""
    before = flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    try:
        yield
    finally:
        flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = before


class _Counter(TorchDispatchMode):
    """Marks memory: with the softmaxes (by number) its entries come from, as a parameter, or as a product."""

    supports_higher_order_operators = True

    def __init__(self, model: nn.Module, running: RunningModules) -> None:
        super().__init__()
        self.events: list[Event] = []
        self._running = running
        self._marks = Marks()
        for tensor in (*model.parameters(), *model.buffers()):
            self._marks.put(tensor, [_PARAMETER])

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(getattr(func, "overloadpacket", func)).removeprefix("aten.")
        if name in FUSED:
            weights = fused_weights(name, args, kwargs)
            result = func(*args, **kwargs)
            where = self._running.innermost
            self.events.append(Event(name, where, shape_of(args[0]), True, where, weights))
            return result
        result = func(*args, **kwargs)
        if name in SOFTMAX or (name == "exp" and _PRODUCT in self._marks.of(args[0])):
            self._softmax(name, args, result)
        elif name in PRODUCTS:
            first = PRODUCTS[name]
            self._product(args[first], args[first + 1], result)
        elif name == "convolution":
            self._through_parameter(args[0], args[1], result)
        elif name in MOVES or name in ENTRYWISE:
            self._follow(name, tensors((args, kwargs)), result)
        return result

    def _softmax(self, name: str, args: tuple[Any, ...], result: Tensor) -> None:
        of_product = _PRODUCT in self._marks.of(args[0])
        self._marks.put(result, [len(self.events)])
        weights = None if name == "exp" else result.detach().clone().movedim(args[1], -1)  # exp is not normalised yet
        self.events.append(Event(name, self._running.innermost, shape_of(result), of_product, weights=weights))

    def _product(self, left: Tensor, right: Tensor, result: Tensor) -> None:
        for factor, other in ((left, right), (right, left)):
            if _PARAMETER in self._marks.of(other):
                self._through_parameter(factor, other, result)
                continue
            for number in self._softmaxes(factor):
                self.events[number].contracted_in = self._running.innermost
        if not any(_PARAMETER in self._marks.of(factor) for factor in (left, right)):
            self._marks.put(result, [_PRODUCT])

    def _through_parameter(self, factor: Tensor, parameter: Tensor, result: Tensor) -> None:
        """A parameter that mixes weights of the same number, as talking heads do, makes weights of them."""
        if _PARAMETER in self._marks.of(parameter) and factor.numel() == result.numel():
            self._marks.put(result, self._marks.of(factor) - {_PARAMETER})

    def _follow(self, name: str, operands: list[Tensor], result: Any) -> None:
        if name == "mul" and len(operands) == 2:
            self._one_key(*operands)
        for output in tensors(result):
            for operand in operands:
                if name in MOVES or operand.numel() == output.numel():
                    self._marks.put(output, self._marks.of(operand) - {_PARAMETER})
            if operands and all(_PARAMETER in self._marks.of(operand) for operand in operands):
                self._marks.put(output, [_PARAMETER])

    def _one_key(self, left: Tensor, right: Tensor) -> None:
        """`einsum` contracts an axis of one key by multiplying."""
        for weights, values in ((left, right), (right, left)):
            for number in self._softmaxes(weights):
                event = self.events[number]
                if event.shape[-1:] == (1,) and event.of_product and not self._marks.of(values) & {_PARAMETER, number}:
                    event.contracted_in = self._running.innermost

    def _softmaxes(self, tensor: Tensor) -> list[int]:
        return [mark for mark in self._marks.of(tensor) if isinstance(mark, int)]
