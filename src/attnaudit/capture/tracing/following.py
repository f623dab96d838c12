"""Facts of what ordinary operations make: views, moves, sums and other forms of tensors with facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing import scores
from attnaudit.capture.tracing.changes import changed_form
from attnaudit.capture.tracing.derived import deciding, derived
from attnaudit.capture.tracing.facts import Facts
from attnaudit.capture.tracing.forms import Changed, Fact, Form, Product
from attnaudit.capture.tracing.inheritance import converted, inherited
from attnaudit.capture.tracing.joining import joined_fact
from attnaudit.capture.tracing.labels import Labels
from attnaudit.capture.tracing.moves import Taken, View, move_of, turned
from attnaudit.capture.tracing.operations import TorchOp
from attnaudit.capture.tracing.places import Alike
from attnaudit.capture.tracing.products import lookup_labels
from attnaudit.capture.tracing.write_through import write_through
from attnaudit.capture.tracing.writing import writing_of


class Following:
    """Gives a fact to the result of an operation of which an operand has one."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def follow(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """The facts of what an operation made of operands of which some have facts."""
        operands = tensors_of(args, kwargs)
        facts = [self.facts.get(operand) for operand in operands]
        if not any(facts):
            return
        first = facts[0] if args and operands[0] is args[0] else None
        if operation.turns is not None and first is not None:
            self.facts[result] = turned(operation.turns, args, kwargs, first)
            return
        if first is not None and isinstance(result, Tensor):
            if operation.copies:
                self.facts[result] = converted(first, operands[0])
                return
            move = move_of(operation, args, kwargs, None)
            if move is not None:
                self.facts[result] = first.moved(move, operands[0].shape)
                return
        elif first is not None and operation.is_view:
            for place, part in enumerate(result):
                move = move_of(operation, args, kwargs, place)
                if move is not None:
                    self.facts[part] = first.moved(move, operands[0].shape)
            return
        known = dict(zip(map(id, operands), facts, strict=True))
        writing = writing_of(operation, args, kwargs)
        for made in (result,) if isinstance(result, Tensor) else tensors_of((result,), {}):
            form = self._form(operation.name, args, kwargs, known, made)
            self.facts[made] = inherited(operation, writing, made, operands, facts, form)
        if operation.is_mutable and operands:
            write_through(self.facts, operands[0], facts[0])

    def derive(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """The labels of a result that has other axes than what they follow from."""
        operand = deciding(operation, args)
        given = None if operand is None else self.facts.get(operand)
        if given is None or (operand is not args[0] and self.facts.get(args[0]) is not None):
            return  # rows of an activation have the labels that they had
        for made in (result,) if isinstance(result, Tensor) else tensors_of((result,), {}):
            fact, labels = self.facts.get(made), derived(operation, args, kwargs, given, made)
            if fact is not None and labels is not None:
                self.facts[made] = replace(fact, labels=labels)

    def sorted(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Sorting takes elements elsewhere along an axis, and says where from."""
        self.follow(operation, args, kwargs, result)
        before, after = self.facts.get(args[0]), self.facts.get(result[0])
        if before is not None and after is not None and after.form is None and before.labels is not None:
            place = 2 if operation.name == "topk" else 1
            axis = kwargs.get("dim", args[place] if len(args) > place else -1)
            self.facts[result[0]] = replace(after, labels=before.labels.moved(Taken(axis, result[1])))

    def scanned(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Running sums and the like mix what comes before along an axis, which may run over inputs."""
        self.follow(operation, args, kwargs, result)
        made = result if isinstance(result, Tensor) else result[0]
        fact = self.facts.get(made)
        if fact is not None and fact.labels is not None:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
            self.facts[made] = replace(fact, labels=fact.labels.moved(Alike(axis)))

    def cat(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Tensors that are joined keep what is known of each in its part."""
        operands = args[0]
        facts = [self.facts.get(operand) for operand in operands]
        if any(facts):
            axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
            self.facts[result] = joined_fact(operands, facts, axis, result)

    def stack(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Stacking is joining along a new axis."""
        axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        known = [(operand, self.facts.get(operand)) for operand in args[0]]
        if any(fact for _, fact in known):
            move = View(torch.ops.aten.unsqueeze.default, (axis,), (), None)
            facts = [None if fact is None else fact.moved(move, operand.shape) for operand, fact in known]
            self.facts[result] = joined_fact([operand.unsqueeze(axis) for operand, _ in known], facts, axis, result)

    def distance(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Distances between activations may become scores, and are not those of attention."""
        facts = [self.facts.get(operand) for operand in args[:2]]
        if any(facts):
            both = all(fact is not None and fact.activation for fact in facts)
            form = Changed("its scores are distances between queries and keys, and no products", object())
            self.facts[result] = Fact(None, form if both else None)

    def embedding(self, operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Rows looked up in a table are those of the inputs that looked them up."""
        given = self.facts.get(args[1])
        self.facts[result] = Fact(lookup_labels(labels_of(given), result.shape), activation=given is not None)

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
            known = [_of_scores(argument, facts) for argument in args]
            found = rule(name.removesuffix("_"), args, kwargs, known, result)
            if found is not scores.NO_RULE:
                return found  # type: ignore[return-value]
        return changed_form(name, tensors_of(args, {}), facts, result)


def tensors_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Tensor]:
    """The tensors among arguments, and in lists of them."""
    found = []
    for argument in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif isinstance(argument, (list, tuple)):
            found += [part for part in argument if isinstance(part, Tensor)]
    return found


def labels_of(fact: Fact | None) -> Labels | None:
    """Its labels, if it is known and has any."""
    return None if fact is None else fact.labels


def _of_scores(argument: Any, facts: Mapping[int, Fact | None]) -> Fact | None:
    """The fact of an argument; of a list, such as one of indices, that of what was computed from scores."""
    if not isinstance(argument, (list, tuple)):
        return facts.get(id(argument))
    found = (facts.get(id(part)) for part in argument)
    return next((fact for fact in found if fact is not None and isinstance(fact.form, Product | Changed)), None)
