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

from attnaudit.capture.attention_call import AttentionCall, NotCapturable
from attnaudit.capture.tracing import scores
from attnaudit.capture.tracing.changes import changed_form
from attnaudit.capture.tracing.completion import attention_of
from attnaudit.capture.tracing.facts import Facts
from attnaudit.capture.tracing.forms import Changed, Dropout, Fact, Form, Product, Softmax, Weights
from attnaudit.capture.tracing.fused import fused_attention, is_fused
from attnaudit.capture.tracing.inheritance import converted, inherited
from attnaudit.capture.tracing.joining import joined_fact
from attnaudit.capture.tracing.labels import Labels, along
from attnaudit.capture.tracing.moves import COPIES, changed_nothing, move_of, torch_name
from attnaudit.capture.tracing.products import (
    Factors,
    convolution_labels,
    factors_of,
    is_product,
    lookup_labels,
    product_labels,
)

_SOFTMAX = frozenset(("_softmax", "_safe_softmax"))
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
        self._names: dict[Any, tuple[str, bool, bool]] = {}
        self._layer, self._on_call, self._refuse = layer, on_call, refuse

    def start(self, tensor: Tensor, inputs: int) -> None:
        """A tensor that the model is called with; its first axis runs over inputs if it has as many."""
        label = along(tensor.shape, {0: inputs}, inputs) if tensor.dim() and len(tensor) == inputs else None
        labels = Labels(lambda name: label if name == "sample" else None)
        self._facts[tensor] = Fact(labels, activation=tensor.is_floating_point())

    def observe(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Look at one operation that has just returned `result`."""
        known = self._names.get(func)
        if known is None:
            name = torch_name(func)
            known = self._names[func] = name, is_fused(name), is_product(name)
        name, fused, product = known
        if isinstance(result, Tensor) and result.is_nested:
            return
        if fused:
            self._fused(func, args, kwargs, result)
            return
        if product:
            self._product(factors_of(name, args, kwargs), result)
            return
        operands = _tensors((*args, *kwargs.values()) if kwargs else args)
        facts = [self._facts.get(operand) for operand in operands]
        if name in _SOFTMAX:
            self._softmax(args[0], facts[0], args[1] % args[0].dim(), result)
        elif name == "convolution" and result.dim() == operands[0].dim():
            self._convolution(facts, result, depthwise=args[8] == args[0].shape[1] == result.shape[1])
        elif name == "embedding":
            given = facts[1]
            self._facts[result] = Fact(lookup_labels(_labels(given), result.shape), activation=given is not None)
        elif name in _RANDOM:
            self._random(name, operands, facts, result)
        elif any(facts) and not name.startswith(_TEMPLATES):
            self._follow(func, name, args, kwargs, operands, facts, result)

    def _follow(
        self,
        func: Any,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        operands: Sequence[Tensor],
        facts: Sequence[Fact | None],
        result: Any,
    ) -> None:
        """The facts of what an operation made of operands of which some have facts."""
        first = facts[0] if operands and args and operands[0] is args[0] else None
        if first is not None and isinstance(result, Tensor):
            if name in COPIES:
                self._facts[result] = converted(first, operands[0])
                return
            move = move_of(func, name, args, kwargs, None)
            if move is not None:
                self._facts[result] = first.moved(move, operands[0].shape)
                return
        elif first is not None and func.is_view:
            for place, part in enumerate(result):
                move = move_of(func, name, args, kwargs, place)
                if move is not None:
                    self._facts[part] = first.moved(move, operands[0].shape)
            return
        if name == "cat":
            self._facts[result] = joined_fact(
                operands, facts, kwargs.get("dim", args[1] if len(args) > 1 else 0), result
            )
            return
        known = dict(zip(map(id, operands), facts, strict=True))
        for made in _tensors((result,)):
            form = self._form(name, args, kwargs, known, made)
            self._facts[made] = inherited(name, made, operands, facts, form)
        if func._schema.is_mutable and operands:
            self._write_through(operands[0])

    def _form(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        facts: Mapping[int, Fact | None],
        result: Tensor,
    ) -> Form | None:
        """The form of the result of an operation that is neither a product nor a rearrangement."""
        rule = scores.RULES.get(name.removesuffix("_"))
        if rule is not None:
            known = [facts.get(id(argument)) for argument in args]
            found = rule(name.removesuffix("_"), args, kwargs, known, result)
            if found is not scores.NO_RULE:
                return found  # type: ignore[return-value]
        return changed_form(name, _tensors(args), facts, result)

    def _product(self, factors: Factors, result: Tensor) -> None:
        left, right = self._facts.get(factors.left), self._facts.get(factors.right)
        labels = product_labels(_labels(left), _labels(right), result.shape, vector=factors.vector)
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

    def _convolution(self, facts: Sequence[Fact | None], result: Tensor, *, depthwise: bool) -> None:
        given = facts[0]
        follows = None if given is None else scores.multiplied(given, None, 1)
        form = follows if isinstance(follows, Changed) else None
        if given is not None and isinstance(given.form, Weights) and given.form.softmax.reason is None:
            given.form.softmax.reason = "its attention weights are mixed by a convolution after the softmax"
        activation = given is not None and given.activation
        self._facts[result] = Fact(convolution_labels(_labels(given), result.shape, depthwise), form, activation)

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
        softmax.applied = True
        try:
            call = attention_of(weights, factors, left, right, weights_left, result)
        except NotCapturable as reason:
            softmax.reason = softmax.reason or str(reason)
            return
        softmax.settled = True
        self._on_call(call)

    def _fused(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        try:
            if result[0].is_nested:
                raise NotCapturable("its tensors are nested")
            call, fact = fused_attention(func, args, kwargs, result[0], self._facts.get)
            self._on_call(call)
            self._facts[result[0]] = fact
        except NotCapturable as reason:
            self._refuse(str(reason))

    def _softmax(self, logits: Tensor, fact: Fact | None, axis: int, result: Tensor) -> None:
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
        self.softmaxes.append(softmax)
        weights = Weights(softmax, product, _labels(fact))
        shape = result.shape
        coordinates = Labels(lambda name: _coordinate(name, shape))
        self._facts[result] = Fact(coordinates, weights, fact is not None and fact.activation)

    def _random(self, name: str, operands: Sequence[Tensor], facts: Sequence[Fact | None], result: Any) -> None:
        """Dropout, which is off in evaluation unless a model insists on it."""
        if name != "native_dropout":
            self._facts[result] = Fact(None, Dropout(), activation=False)
            return
        fact = facts[0]
        if fact is not None:
            form = fact.form
            kept = changed_nothing(operands[0], result[0])
            if isinstance(form, Weights) and not kept:
                form.softmax.reason = "attention dropout is on"
            self._facts[result[0]] = fact if kept else replace(fact, form=None)

    def _write_through(self, part: Tensor) -> None:
        """An operation changed `part` in place: other tensors in the same memory are changed, too."""
        fact, whole = self._facts.get(part), part._base
        if whole is None or fact is None:
            return
        if self._facts.get(whole) is None:
            self._facts[whole] = Fact(None, activation=fact.activation)
        of_scores = isinstance(fact.form, Changed) or (isinstance(fact.form, Product) and fact.form.content)
        known = self._facts.get(whole)
        if of_scores and (known is None or known.form is None):
            reason = "its scores are put together from several products, as in sparse or sliding-window attention"
            self._facts[whole] = Fact(None, Changed(reason, object()))
        if fact.form is None:
            return
        memory = part.untyped_storage()._cdata
        for other, known in self._facts.items():
            if other is not part and isinstance(known.form, Product) and other.untyped_storage()._cdata == memory:
                self._facts[other] = scores.written(other, known, part, fact)


def _labels(fact: Fact | None) -> Labels | None:
    return None if fact is None else fact.labels


def _coordinate(name: str, shape: torch.Size) -> Tensor | None:
    """Places along an axis, given by its number."""
    return along(shape, {int(name): shape[int(name)]}, shape[int(name)]) if name.isdecimal() else None


def _tensors(arguments: Sequence[Any]) -> Sequence[Tensor]:
    found = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif isinstance(argument, (list, tuple)):
            found += [part for part in argument if isinstance(part, Tensor)]
    return found
