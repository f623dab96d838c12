"""Recognise attention that a model computes step by step: matmul, scale, mask, softmax, matmul.

Every tensor computed from a product of two activations has a *trace*: which step of the formula it is. Operations that
keep the form softmax(QKᵀ·scale + bias)V extend the trace; any other operation makes it `Unsupported`, with the reason.
Nothing is inferred from the names of modules or attributes, so the same code works for timm, transformers and custom
layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from attnaudit.capture.attention_call import AttentionCall


@dataclass(frozen=True)
class Scaled:
    """An activation times a number, as in `q = q * self.scale`."""

    factor: float


@dataclass(frozen=True)
class Scores:
    """QKᵀ·scale; `biased` if a mask or position term was added."""

    query: Tensor
    key: Tensor
    scale: float | Tensor
    biased: bool = False


@dataclass(frozen=True)
class Weights:
    """The softmax of scores; `logits` is the input of the model's softmax."""

    scores: Scores
    logits: Tensor


@dataclass(frozen=True)
class Unsupported:
    """Attention that is not of the form softmax(QKᵀ·scale + bias)V."""

    reason: str


Trace = Scaled | Scores | Weights | Unsupported

# Operations that rearrange or convert numbers.
_VIEWS = frozenset((
    "view", "reshape", "permute", "transpose", "swapaxes", "movedim", "unsqueeze", "squeeze", "expand", "flatten",
    "unflatten", "view_as", "reshape_as", "expand_as", "contiguous", "clone", "detach", "to", "type", "type_as",
    "float", "double", "half", "bfloat16",
))  # fmt: skip
_PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "bmm"))
_TIMES = frozenset(("mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"))
_OVER = frozenset(("div", "__truediv__", "div_", "__itruediv__", "true_divide", "divide"))
_PLUS = frozenset((
    "add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "sub_", "__isub__", "masked_fill",
    "masked_fill_", "where",
))  # fmt: skip
_SOFTMAX = frozenset(("softmax",))
_DROPOUT = frozenset(("dropout", "dropout_", "alpha_dropout", "feature_dropout"))


class EagerAttention:
    """Follows traces through a forward pass; `observe` returns an attention call, a reason to refuse it, or None."""

    def __init__(self) -> None:
        self._traces: MutableMapping[Tensor, Trace] = WeakTensorKeyDictionary()

    def observe(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> AttentionCall | Unsupported | None:
        """Look at one torch call that has just returned `result`."""
        if not isinstance(result, Tensor):
            return None
        name = _name_of(func)
        operands = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        traces = [self._traces.get(operand) for operand in operands]
        if name in _PRODUCTS and len(operands) == 2:
            return self._product(operands, traces, result)
        if name == "einsum":
            return self._einsum(args, result)
        if all(trace is None for trace in traces):
            self._note_scaling(name, args, result)
            return None
        trace = next(trace for trace in traces if trace is not None)
        following = self._follow(name, trace, args, kwargs, result)
        if following is not None:
            self._traces[result] = following
        return None

    def _note_scaling(self, name: str, args: Sequence[Any], result: Tensor) -> None:
        factor = _number_among(args)
        if factor is None or result.dim() < 3:
            return
        if name in _TIMES:
            self._traces[result] = Scaled(factor)
        elif name in _OVER and isinstance(args[0], Tensor) and factor != 0:
            self._traces[result] = Scaled(1 / factor)

    def _follow(
        self, name: str, trace: Trace, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor
    ) -> Trace | None:
        """The trace of `result`, given the trace of one operand."""
        if name in _VIEWS:
            return trace
        if isinstance(trace, Unsupported):
            return trace
        if isinstance(trace, Scaled):
            factor = _number_among(args)
            return Scaled(trace.factor * factor) if name in _TIMES and factor is not None else None
        if isinstance(trace, Weights):
            if name in _DROPOUT and not _drops(args, kwargs):
                return trace
            return Unsupported(f"its attention weights pass through {name} after the softmax")
        if name in _TIMES or name in _OVER:
            return _rescaled(trace, name, args)
        if name in _PLUS:
            return replace(trace, biased=True)
        if name in _SOFTMAX:
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim in (-1, result.dim() - 1):
                return Weights(trace, args[0])
            return Unsupported(f"its softmax runs over axis {dim}, not over the keys")
        if name == "linear":
            return Unsupported("its scores are mixed across heads by a linear layer (talking heads)")
        return Unsupported(f"its scores pass through {name} before the softmax")

    def _product(
        self, operands: Sequence[Tensor], traces: Sequence[Trace | None], result: Tensor
    ) -> AttentionCall | Unsupported | None:
        left, right = operands
        trace = traces[0]
        if isinstance(trace, Weights):
            return _completed(trace, right, result)
        unsupported = next((t for t in traces if isinstance(t, Unsupported)), None)
        if unsupported is not None:
            return unsupported
        if any(isinstance(t, Scores) for t in traces):
            return Unsupported("it has no softmax between its two products (linear attention)")
        if left.dim() >= 3 and right.dim() == left.dim():
            self._start(left, right.transpose(-2, -1), traces, result)
        return None

    def _start(self, query: Tensor, key: Tensor, traces: Sequence[Trace | None], result: Tensor) -> None:
        factors = [trace.factor if isinstance(trace, Scaled) else 1.0 for trace in traces]
        query, key = (x if f == 1.0 or f == 0.0 else x / f for x, f in zip((query, key), factors, strict=True))
        self._traces[result] = Scores(query, key, scale=factors[0] * factors[1])

    def _einsum(self, args: Sequence[Any], result: Tensor) -> AttentionCall | Unsupported | None:
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        if not isinstance(equation, str) or len(operands) != 2:
            return None
        traces = [self._traces.get(operand) for operand in operands]
        inputs, _, out = equation.replace(" ", "").partition("->")
        first, _, second = inputs.partition(",")
        batch = first[:-2]
        same_batch = second[:-2] == batch and out[:-2] == batch
        if same_batch and first[-1] == second[-1] and out[-2:] == first[-2] + second[-2]:
            self._start(operands[0], operands[1], traces, result)
            return None
        if isinstance(traces[0], Weights) and same_batch and out[-2:] == first[-2] + second[-1]:
            return _completed(traces[0], operands[1], result)
        if any(isinstance(trace, (Scores, Weights, Unsupported)) for trace in traces):
            return Unsupported(f"its scores are multiplied by the pattern {equation!r}, as in sliding-window attention")
        return None


def _completed(weights: Weights, value: Tensor, output: Tensor) -> AttentionCall:
    """The call that `weights @ value` completes; its bias is the logits minus QKᵀ·scale."""
    scores, bias = weights.scores, None
    if scores.biased:
        raw = scores.query @ scores.key.transpose(-2, -1)
        bias = weights.logits.reshape(raw.shape) - raw * scores.scale
    return AttentionCall(scores.query, scores.key, value, output, scores.scale, bias)


def _name_of(func: Callable[..., Any]) -> str:
    if func in (torch.Tensor.mT.__get__, torch.Tensor.T.__get__):  # type: ignore[attr-defined]
        return "transpose"
    return getattr(func, "__name__", "an unknown operation")


def _number_among(args: Sequence[Any]) -> float | None:
    """The scalar operand of a two-operand call, or None."""
    for arg in args[:2]:
        if isinstance(arg, (int, float)) and not isinstance(arg, bool):
            return float(arg)
        if isinstance(arg, Tensor) and arg.dim() == 0 and arg.is_floating_point():
            return float(arg)
    return None


def _rescaled(scores: Scores, name: str, args: Sequence[Any]) -> Scores | Unsupported:
    """Scores multiplied or divided by a number, or by one number per head (cosine attention)."""
    factor: float | Tensor | None = _number_among(args)
    if factor is None:
        factor = next((a for a in args[:2] if isinstance(a, Tensor) and a.shape[-2:] == (1, 1)), None)
    if factor is None:
        return Unsupported(f"its scores are changed by an elementwise {name.strip('_')} before the softmax")
    return replace(scores, scale=scores.scale / factor if name in _OVER else scores.scale * factor)


def _drops(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    probability = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("training", args[2] if len(args) > 2 else True)
    return bool(training) and probability > 0
