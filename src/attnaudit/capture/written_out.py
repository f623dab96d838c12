"""Recognising attention that a model writes out by hand: matmul, scale, mask, softmax, matmul.

Every tensor that descends from a product of two activations carries a *trail*: what it is so far. Operations that
keep the form softmax(QKᵀ·scale + bias)V extend the trail; any other turns it into `Lost`, with the reason. Nothing is
guessed from names of modules or attributes, so the same code reads timm, transformers and home-made layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from attnaudit.capture.record import AttentionCall


@dataclass(frozen=True)
class Scaled:
    """An activation times a number, as in `q = q * self.scale`."""

    factor: float


@dataclass(frozen=True)
class Scores:
    """QKᵀ·scale, plus whatever was added (`biased`)."""

    query: Tensor
    key: Tensor
    scale: float | Tensor
    biased: bool = False


@dataclass(frozen=True)
class Weights:
    """softmax of scores; `logits` is what the model gave to its softmax."""

    scores: Scores
    logits: Tensor


@dataclass(frozen=True)
class Lost:
    """Attention that took a turn the form does not allow."""

    reason: str


Trail = Scaled | Scores | Weights | Lost

# Operations that move numbers but do not change them.
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


class WrittenOutAttention:
    """Follows trails through a forward pass; `observe` returns an attention call, a reason, or nothing."""

    def __init__(self) -> None:
        self._trails: MutableMapping[Tensor, Trail] = WeakTensorKeyDictionary()

    def observe(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> AttentionCall | Lost | None:
        """Look at one torch call that has just returned `result`."""
        if not isinstance(result, Tensor):
            return None
        name = _name_of(func)
        operands = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        trails = [self._trails.get(operand) for operand in operands]
        if name in _PRODUCTS and len(operands) == 2:
            return self._product(operands, trails, result)
        if name == "einsum":
            return self._einsum(args, result)
        if all(trail is None for trail in trails):
            self._note_scaling(name, args, result)
            return None
        trail = next(trail for trail in trails if trail is not None)
        following = self._follow(name, trail, args, kwargs, result)
        if following is not None:
            self._trails[result] = following
        return None

    def _note_scaling(self, name: str, args: Sequence[Any], result: Tensor) -> None:
        factor = _number_among(args)
        if factor is None or result.dim() < 3:
            return
        if name in _TIMES:
            self._trails[result] = Scaled(factor)
        elif name in _OVER and isinstance(args[0], Tensor) and factor != 0:
            self._trails[result] = Scaled(1 / factor)

    def _follow(
        self, name: str, trail: Trail, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor
    ) -> Trail | None:
        """The trail of `result`, given the trail of one operand."""
        if name in _VIEWS:
            return trail
        if isinstance(trail, Lost):
            return trail
        if isinstance(trail, Scaled):
            factor = _number_among(args)
            return Scaled(trail.factor * factor) if name in _TIMES and factor is not None else None
        if isinstance(trail, Weights):
            if name in _DROPOUT and not _drops(args, kwargs):
                return trail
            return Lost(f"its attention weights pass through {name} after the softmax")
        if name in _TIMES or name in _OVER:
            return _rescaled(trail, name, args)
        if name in _PLUS:
            return replace(trail, biased=True)
        if name in _SOFTMAX:
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim in (-1, result.dim() - 1):
                return Weights(trail, args[0])
            return Lost(f"its softmax runs over axis {dim}, not over the keys")
        if name == "linear":
            return Lost("its scores are mixed across heads by a linear layer (talking heads)")
        return Lost(f"its scores pass through {name} before the softmax")

    def _product(
        self, operands: Sequence[Tensor], trails: Sequence[Trail | None], result: Tensor
    ) -> AttentionCall | Lost | None:
        left, right = operands
        trail = trails[0]
        if isinstance(trail, Weights):
            return _completed(trail, right, result)
        lost = next((t for t in trails if isinstance(t, Lost)), None)
        if lost is not None:
            return lost
        if any(isinstance(t, Scores) for t in trails):
            return Lost("there is no softmax between its two products (linear attention)")
        if left.dim() >= 3 and right.dim() == left.dim():
            self._start(left, right.transpose(-2, -1), trails, result)
        return None

    def _start(self, query: Tensor, key: Tensor, trails: Sequence[Trail | None], result: Tensor) -> None:
        factors = [trail.factor if isinstance(trail, Scaled) else 1.0 for trail in trails]
        query, key = (x if f == 1.0 or f == 0.0 else x / f for x, f in zip((query, key), factors, strict=True))
        self._trails[result] = Scores(query, key, scale=factors[0] * factors[1])

    def _einsum(self, args: Sequence[Any], result: Tensor) -> AttentionCall | Lost | None:
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        if not isinstance(equation, str) or len(operands) != 2:
            return None
        trails = [self._trails.get(operand) for operand in operands]
        inputs, _, out = equation.replace(" ", "").partition("->")
        first, _, second = inputs.partition(",")
        batch = first[:-2]
        same_batch = second[:-2] == batch and out[:-2] == batch
        if same_batch and first[-1] == second[-1] and out[-2:] == first[-2] + second[-2]:
            self._start(operands[0], operands[1], trails, result)
            return None
        if isinstance(trails[0], Weights) and same_batch and out[-2:] == first[-2] + second[-1]:
            return _completed(trails[0], operands[1], result)
        if any(isinstance(trail, (Scores, Weights, Lost)) for trail in trails):
            return Lost(f"its scores are multiplied by the pattern {equation!r}, as in sliding-window attention")
        return None


def _completed(weights: Weights, value: Tensor, output: Tensor) -> AttentionCall:
    """The call that `weights @ value` completes; what its logits have over QKᵀ·scale is what was added."""
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
    """The plain number of a two-operand call, if there is one."""
    for arg in args[:2]:
        if isinstance(arg, (int, float)) and not isinstance(arg, bool):
            return float(arg)
        if isinstance(arg, Tensor) and arg.dim() == 0 and arg.is_floating_point():
            return float(arg)
    return None


def _rescaled(scores: Scores, name: str, args: Sequence[Any]) -> Scores | Lost:
    """Scores times or over a number, or times one number per head (cosine attention)."""
    factor: float | Tensor | None = _number_among(args)
    if factor is None:
        factor = next((a for a in args[:2] if isinstance(a, Tensor) and a.shape[-2:] == (1, 1)), None)
    if factor is None:
        return Lost(f"its scores are changed by an elementwise {name.strip('_')} before the softmax")
    return replace(scores, scale=scores.scale / factor if name in _OVER else scores.scale * factor)


def _drops(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    probability = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("training", args[2] if len(args) > 2 else True)
    return bool(training) and probability > 0
