"""Follow a forward pass, operation by operation, and recognise attention in it.

Every tensor computed from the input has a `Fact`. Operations that keep the form softmax(QKᵀ·scale + bias)V extend it,
any other one ends it, with the reason. It sees the few operations that torch dispatches to (`bmm`, `_softmax`, `add`,
…), so it makes no difference whether a model writes `@`, `einsum` or `baddbmm`, and nothing is inferred from the names
of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall, NotCapturable, NotValues
from attnaudit.capture.tracing import scores
from attnaudit.capture.tracing.completion import attention_of
from attnaudit.capture.tracing.facts import Facts
from attnaudit.capture.tracing.following import Following, labels_of, tensors_of
from attnaudit.capture.tracing.forms import Changed, Convolved, Dropout, Fact, Form, Product, Softmax, Weights
from attnaudit.capture.tracing.fused import fused_attention, is_fused
from attnaudit.capture.tracing.labels import Labels, along, tokens_along
from attnaudit.capture.tracing.moves import changed_nothing
from attnaudit.capture.tracing.operations import TorchOp, operation_of
from attnaudit.capture.tracing.places import SCANS
from attnaudit.capture.tracing.products import (
    Factors,
    convolution_labels,
    factors_of,
    is_product,
    product_labels,
)
from attnaudit.capture.tracing.unread import is_unread, written_by

#: Looks at an operation, with its arguments and its result.
Look = Callable[[TorchOp, Sequence[Any], Mapping[str, Any], Any], None]

_RANDOM = frozenset(("bernoulli", "bernoulli_", "native_dropout"))
#: They take a tensor for its shape and type alone.
_TEMPLATES = ("new_", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")


class Tracer:
    """Facts of the tensors of one forward pass; `softmaxes` lists every softmax that ran."""

    def __init__(
        self, layer: Callable[[], str], on_call: Callable[[AttentionCall], None], refuse: Callable[[str], None]
    ) -> None:
        self.softmaxes: list[Softmax] = []
        self._facts = Facts()
        self._following = Following(self._facts)
        self._labels: dict[Any, Labels] = {}
        self._operations: dict[Any, tuple[TorchOp, Look]] = {}
        self._layer, self._on_call, self._refuse = layer, on_call, refuse

    def start(self, tensor: Tensor, inputs: int | None, number: int | None = None) -> None:
        """A tensor that the model is called with; its axes run over inputs, if it has as many, and their tokens.

        Where `inputs` is None, no axis is known to run over inputs. One that is not called with, but comes from
        elsewhere, has no `number`.
        """
        known: dict[str, Tensor] = {}
        if tensor.dim() and len(tensor) == inputs:
            known["sample"] = along(tensor.shape, {0: inputs}, inputs)
            if tensor.dim() > 1 and number is not None:
                known["token"] = tokens_along(tensor.shape, number)
        labels = Labels(known.get, shared=self._labels)
        self._facts[tensor] = Fact(labels, activation=tensor.is_floating_point())

    def forget(self) -> None:
        """Let go of all labels, once the model has run."""
        self._labels.clear()

    def observe(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Look at one operation that has just returned `result`."""
        known = self._operations.get(func)
        if known is None:
            operation = operation_of(func)
            known = self._operations[func] = operation, self._look(operation)
        if not (isinstance(result, Tensor) and result.is_nested):
            operation, look = known
            look(operation, args, kwargs, result)
            self._following.derive(operation, args, kwargs, result)

    def _look(self, operation: TorchOp) -> Look:
        """What looks at an operation."""
        name = operation.name
        if is_unread(operation):
            return self._unread
        if is_fused(name):
            return self._fused
        if is_product(name):
            return self._product
        if name in _RANDOM:
            return self._random
        if name.startswith(_TEMPLATES):
            return _nothing
        own: dict[str, Look] = {
            "_softmax": self._softmax,
            "_safe_softmax": self._softmax,
            "convolution": self._convolution,
            "embedding": self._following.embedding,
            "cat": self._following.cat,
            "stack": self._following.stack,
            "sort": self._following.sorted,
            "topk": self._following.sorted,
            **dict.fromkeys(SCANS, self._following.scanned),
            "_cdist_forward": self._following.distance,
            "_euclidean_dist": self._following.distance,
        }
        return own.get(name, self._following.follow)

    def _unread(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """An operation that cannot be looked into: of several activations, it may be attention."""
        known = [(operand, self._facts.get(operand)) for operand in tensors_of(args, kwargs)]
        active = [fact.activation and operand.is_floating_point() for operand, fact in known if fact is not None]
        if sum(active) > 1:
            self._refuse(
                f"it runs {operation.func}, which may be attention and cannot be looked into: "
                "choose another implementation"
            )
        self._following.follow(operation, args, kwargs, result)
        if any(active):
            for written in written_by(operation, args, kwargs):
                self._facts[written] = Fact(None, activation=written.is_floating_point())

    def _product(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        factors = factors_of(operation.name, args, kwargs)
        left, right = self._facts.get(factors.left), self._facts.get(factors.right)
        labels = product_labels(labels_of(left), labels_of(right), result.shape, vector=factors.vector)
        activation = any(fact is not None and fact.activation for fact in (left, right))
        form = self._product_form(factors, left, right, result)
        self._facts[result] = Fact(labels, form, activation)

    def _product_form(self, factors: Factors, left: Fact | None, right: Fact | None, result: Tensor) -> Form | None:
        for fact, other, axis in ((left, right, -1), (right, left, -2)):
            form = None if fact is None else fact.form
            if isinstance(form, Weights):
                self._apply(form, factors, left, right, weights_left=axis == -1, result=result)
                return None
            follows = None if fact is None else scores.multiplied(fact, other, axis)
            if isinstance(follows, Changed):
                return follows
            if follows is not None:
                self._refuse(follows)
                if isinstance(form, Changed) and isinstance(form.origin, Softmax):
                    form.origin.settled = True
                return None
        return factors.product(left, right)

    def _convolution(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        if result.dim() != args[0].dim():
            return
        depthwise = args[8] == args[0].shape[1] == result.shape[1]
        given = self._facts.get(args[0])
        follows = None if given is None else scores.multiplied(given, None, 1)
        form = follows if isinstance(follows, Changed) else Convolved()
        if given is not None and isinstance(given.form, Weights) and given.form.softmax.changed is None:
            given.form.softmax.changed = "its attention weights are mixed by a convolution after the softmax"
        activation = given is not None and given.activation
        self._facts[result] = Fact(convolution_labels(labels_of(given), result.shape, depthwise), form, activation)

    def _apply(
        self,
        weights: Weights,
        factors: Factors,
        left: Fact | None,
        right: Fact | None,
        *,
        weights_left: bool,
        result: Tensor,
    ) -> None:
        """Weights are multiplied by values: the attention is complete."""
        softmax = weights.softmax
        try:
            call = attention_of(weights, factors, left, right, weights_left, result)
        except NotValues:
            return
        except NotCapturable as reason:
            softmax.applied = True
            softmax.reason = softmax.reason or str(reason)
            return
        softmax.applied = softmax.settled = True
        self._on_call(call)

    def _fused(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        try:
            if result[0].is_nested:
                raise NotCapturable("its tensors are nested")
            call, fact = fused_attention(operation.func, args, kwargs, result[0], self._facts.get)
            self._on_call(call)
            self._facts[result[0]] = fact
        except NotCapturable as reason:
            self._refuse(str(reason))

    def _softmax(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        logits, axis = args[0], args[1] % args[0].dim()
        fact = self._facts.get(logits)
        form = None if fact is None else fact.form
        product = form if isinstance(form, Product) else None
        softmax = Softmax(
            self._layer(),
            tuple(logits.shape),
            axis,
            result.dtype,
            form.reason if isinstance(form, Changed) else None,
            known=product is not None,
            content=product is not None and product.content,
        )
        if isinstance(form, Convolved):
            softmax.otherwise = "its scores come from a convolution, and not from queries and keys"
        self.softmaxes.append(softmax)
        given, shape = labels_of(fact), result.shape

        def make(name: str) -> Tensor | None:
            if given is not None and name in ("sample", "token"):
                return given.get(name)
            return _coordinate(name, shape)

        coordinates = Labels(make) if given is None else given.leading_to(("softmax", shape), make)
        weights = Weights(softmax, product, given)
        self._facts[result] = Fact(coordinates, weights, fact is not None and fact.activation)

    def _random(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Dropout, which is off in evaluation unless a model insists on it."""
        if operation.name != "native_dropout":
            self._facts[result] = Fact(None, Dropout(), activation=False)
            return
        fact = self._facts.get(args[0])
        if fact is not None:
            form = fact.form
            kept = changed_nothing(args[0], result[0])
            if isinstance(form, Weights) and not kept:
                form.softmax.changed = "attention dropout is on"
            self._facts[result[0]] = fact if kept else replace(fact, form=None)


def _coordinate(name: str, shape: torch.Size) -> Tensor | None:
    """Places along an axis, given by its number."""
    return along(shape, {int(name): shape[int(name)]}, shape[int(name)]) if name.isdecimal() else None


def _nothing(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
    """Nothing follows from the operation."""
