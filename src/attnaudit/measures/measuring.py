"""Every measure, theory and reference on every head, with one spectrum per head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch

from attnaudit.capture.heads import Heads
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.measures.batches import batches, joined_layers, with_following
from attnaudit.measures.evaluation import Numbers, evaluate
from attnaudit.measures.identifiability import IDENTIFIABLE, KERNEL_RANK
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.measures.references import PrimalReferenceInput, Reference, ReferenceInput
from attnaudit.measures.selection import Selection
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.theories.base import Theory
from attnaudit.theories.registry import PRIMAL_SVD

Measured = tuple[RowKey, dict[str, Numbers]]


def measure_heads(
    layers: Iterable[Heads], selection: Selection, solved: Counter[str] | None = None
) -> Iterator[Measurement]:
    """The heads as they are, and with the values of every reference that shares their keys.

    Layers are taken one by one, and none but the first is held for longer than it and the one before it need. `solved`
    counts heads by the eigen-solver that was used.
    """
    solved = Counter() if solved is None else solved
    for heads, following in with_following(joined_layers(layers)):
        found = (_observed(batch, other, selection, solved) for batch, other in batches(heads, following))
        yield from _joined(heads, found, selection)


def measure_network(layers: Iterable[Heads], reference: Reference, selection: Selection) -> Iterator[Measurement]:
    """The heads of another network, under the name of the reference that it is."""
    for heads in joined_layers(layers):
        found = (_of_network(batch, reference, selection) for batch, _ in batches(heads, None))
        yield from _joined(heads, found, selection)


def measure_primal(heads: PrimalHeads, selection: Selection) -> Iterator[Measurement]:
    """A layer of Primal-Attention as it is, and with the weights of every reference that has some; one kernel each."""
    observed = PrimalInput.of(heads)
    measures = [measure for measure in selection.measures if measure.scope is Scope.PRIMAL]
    also = [measure for measure in selection.measures if measure is KERNEL_RANK] + _guards(selection)
    yield from _joined(heads, [[(RowKey(PRIMAL_SVD.name), evaluate([*measures, *also], observed))]], selection)
    for reference in selection.references:
        for repeat in _repeats(reference, selection):
            changed = reference.apply_primal(PrimalReferenceInput(heads, observed.kernel, selection.seed, repeat))
            if changed is not None:
                numbers = evaluate(measures, PrimalInput(changed, observed.kernel))
                yield from _joined(heads, [[(RowKey(PRIMAL_SVD.name, reference.name, repeat), numbers)]], selection)


def _joined(
    heads: Heads | PrimalHeads, found: Iterable[Iterable[Measured]], selection: Selection
) -> Iterator[Measurement]:
    """What the batches of a layer gave, key by key, whatever the number of batches."""
    parts: dict[RowKey, list[dict[str, Numbers]]] = {}
    for batch in found:
        for key, numbers in batch:
            parts.setdefault(key, []).append(numbers)
    for key, measured in parts.items():
        names = list(measured[0])
        yield Measurement(
            heads,
            key,
            {name: torch.cat([part[name].values for part in measured]) for name in names},
            {name: [problem for part in measured for problem in part[name].problems] for name in names},
            selection.protocol,
        )


def _observed(heads: Heads, other: Heads | None, selection: Selection, solved: Counter[str]) -> Iterator[Measured]:
    keys = KeyKernel(heads, selection.protocol, solved.update)
    for theory in selection.theories:
        predicted, key = PredictedValues(keys, theory), RowKey(theory.name)
        at = MeasureInput(heads, keys, predicted, selection.seed)
        yield key, evaluate([*_measures(selection, theory), *_guards(selection)], at)
        measures = _measures(selection, theory, shares_keys=True)
        for reference in (each for each in selection.references if each.values is not None):
            for repeat in _repeats(reference, selection):
                changed = reference.apply(ReferenceInput(heads, predicted.prediction, other, selection.seed, repeat))
                if changed is not None:
                    at = MeasureInput(changed, keys, predicted, selection.seed)
                    yield replace(key, reference=reference.name, repeat=repeat), evaluate(measures, at)


def _of_network(heads: Heads, reference: Reference, selection: Selection) -> Iterator[Measured]:
    keys = KeyKernel(heads, selection.protocol)
    for theory in selection.theories:
        at = MeasureInput(heads, keys, PredictedValues(keys, theory), selection.seed)
        yield RowKey(theory.name, reference.name), evaluate(_measures(selection, theory), at)


def _repeats(reference: Reference, selection: Selection) -> range:
    return range(selection.repeats if reference.random else 1)


def _measures(selection: Selection, theory: Theory, *, shares_keys: bool = False) -> list[Measure]:
    """Measures of the keys once, of the values for the first theory, of the prediction for all."""
    if theory is not selection.theories[0]:
        return [m for m in selection.measures if m.scope is Scope.PREDICTION and m.every_theory]
    scopes = [Scope.VALUES, Scope.PREDICTION] if shares_keys else [Scope.KEYS, Scope.VALUES, Scope.PREDICTION]
    return [m for m in selection.measures if m.scope in scopes]


def _guards(selection: Selection) -> list[Measure]:
    """What scores need to know of observed heads, whatever is asked for; there are no scores without references."""
    return [IDENTIFIABLE] if selection.references and IDENTIFIABLE not in selection.measures else []
