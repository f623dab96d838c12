"""Every measure, theory and reference on every head, with one spectrum per head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.capture.key_heads import by_key_head
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.measures.applying import comparing_measures, decides, measures_of, possible_theories
from attnaudit.measures.batches import batches, joined_layers, with_following
from attnaudit.measures.evaluation import Measured, Numbers, evaluate, joined
from attnaudit.measures.identifiability import IDENTIFIABLE, KERNEL_RANK, POSSIBLE
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.measure_input import MeasureInput, OwnValues, PredictedValues
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.measures.references import PrimalReferenceInput, Reference, ReferenceInput, Role
from attnaudit.measures.selection import Selection
from attnaudit.measures.two_passes import TwoPasses
from attnaudit.protocol import Protocol
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.theories.base import Theory, impossible
from attnaudit.theories.registry import PRIMAL_SVD

#: Receives the keys of a batch and what theories predict for it.
OnPredicted = Callable[[KeyKernel, Sequence[PredictedValues]], object]


def measure_heads(
    layers: Iterable[Heads],
    selection: Selection,
    solved: Counter[str] | None = None,
    on_predicted: OnPredicted = lambda keys, predictions: None,
    *,
    context: bool = True,
) -> Iterator[Measurement]:
    """The heads as they are, and with the values of every reference that shares their keys.

    Layers are taken one by one, and none but the first is held for longer than it and the one before it need. Heads
    that share their keys are measured as one. `solved` counts heads by the eigen-solver that was used.
    `on_predicted` is called for every batch, so that nobody has to predict its values again. Without `context`, only
    references that decide are measured: the null and the ideal.
    """
    solved = Counter() if solved is None else solved
    for heads, following in with_following(joined_layers(map(by_key_head, layers))):
        # Batches are copied, since heads keep their attention, and that of the first layer would be held to the end.
        kernels = (
            (KeyKernel(replace(batch), selection.protocol, solved.update), other)
            for batch, other in batches(heads, following)
        )
        found = (_observed(keys, other, selection, on_predicted, context) for keys, other in kernels)
        yield from joined(heads, found, selection.protocol)


def measure_network(layers: Iterable[Heads], reference: Reference, selection: Selection) -> Iterator[Measurement]:
    """The heads of another network, under the name of the reference that it is."""
    for heads in joined_layers(map(by_key_head, layers)):
        found = (_of_network(batch, reference, selection) for batch, _ in batches(heads, None))
        yield from joined(heads, found, selection.protocol)


def measure_primal(heads: PrimalHeads, selection: Selection) -> Iterator[Measurement]:
    """A layer of Primal-Attention as it is, and with the weights of every reference that has some; one kernel each."""
    observed = PrimalInput.of(heads)
    measures = [measure for measure in selection.measures if measure.scope is Scope.PRIMAL]
    also = [measure for measure in selection.measures if measure is KERNEL_RANK]
    also += [IDENTIFIABLE] if selection.references and IDENTIFIABLE not in selection.measures else []
    yield from joined(heads, [[(RowKey(PRIMAL_SVD.name), evaluate([*measures, *also], observed))]], selection.protocol)
    repeats = _Repeats(selection)
    for reference in selection.references:
        for repeat in repeats.of(reference):
            changed = reference.apply_primal(PrimalReferenceInput(heads, observed.kernel, selection.seed, repeat))
            if changed is None:
                break
            numbers = evaluate(measures, PrimalInput(changed, observed.kernel))
            yield from joined(heads, [[(RowKey(PRIMAL_SVD.name, reference.name, repeat), numbers)]], selection.protocol)
            repeats.null(reference)


def measure_fits(layers: Iterable[Heads], passes: Sequence[TwoPasses], selection: Selection) -> Iterator[Measurement]:
    """The second pass over layers: their numbers with what was fitted to the other half of the inputs."""
    for heads in layers:
        for batch, _ in batches(heads, None):
            keys = KeyKernel(batch, selection.protocol)
            for own in passes:
                yield from own.measured(keys)


def _observed(
    keys: KeyKernel, other: Heads | None, selection: Selection, on_predicted: OnPredicted, context: bool
) -> Iterator[Measured]:
    """Theory by theory, but computed reference by reference: theories share the work on its values."""
    heads, values = keys.heads, OwnValues(keys.heads)
    compared = [_Compared(selection, theory, keys, context) for theory in selection.predicting]
    found: list[list[Measured]] = [[(own.key, own.observed(values))] for own in compared]
    on_predicted(keys, [own.predicted for own in compared])
    for reference in (each for each in selection.references if each.values is not None):
        for repeat in range(selection.repeats):
            changed: OwnValues | None = None
            for own, place in zip(compared, found, strict=True):
                if not own.takes(reference, repeat):
                    continue
                if changed is None or reference.uses_prediction:
                    given = ReferenceInput(heads, own.predicted.prediction, other, selection.seed, repeat)
                    drawn = reference.apply(given, keys)
                    changed = None if drawn is None else OwnValues(drawn)
                if changed is not None:
                    numbers = own.beside(reference, repeat, changed)
                    place.append((replace(own.key, reference=reference.name, repeat=repeat), numbers))
    return (entry for own in found for entry in own)


class _Compared:
    """One theory beside a batch of heads: what is measured of them, and of each reference."""

    def __init__(self, selection: Selection, theory: Theory, keys: KeyKernel, context: bool) -> None:
        self._seed, self._keys, self._context = selection.seed, keys, context
        self.key, self.predicted = RowKey(theory.name), PredictedValues(keys, theory)
        heads = keys.heads
        own = [*measures_of(selection, theory, heads), *_guards(selection, theory, heads)]
        # Without references nothing is judged, and the study's claims are judged by what it shows.
        everything = context or not selection.references or selection.protocol is Protocol.PAPER
        self._own = [measure for measure in own if measure.every_input or everything]
        every = measures_of(selection, theory, heads, shares_keys=True)
        self._every = [each for each in every if context or each.only_for or decides(each)]
        self._deciding = [each for each in every if decides(each)]
        self._repeats = _Repeats(selection)
        self._roles = set(Role)
        if impossible(theory, heads):  # nothing is scored: only what shows it has a null and an ideal beside it
            self._every = [each for each in self._every if each.only_for and each.closer != "neither"]
            self._deciding = []
            self._repeats = _Repeats(replace(selection, repeats=1))
            self._roles = {Role.NULL, Role.IDEAL} if self._every else set()

    def observed(self, values: OwnValues) -> dict[str, Numbers]:
        """The heads as they are."""
        return evaluate(self._own, self._at(values))

    def takes(self, reference: Reference, repeat: int) -> bool:
        """Whether this repeat of a reference is measured."""
        wanted = self._context or reference.role is Role.IDEAL or self._repeats.may_be_null(reference)
        return wanted and reference.role in self._roles and repeat in self._repeats.of(reference)

    def beside(self, reference: Reference, repeat: int, values: OwnValues) -> dict[str, Numbers]:
        """A reference that has these values: of the ideal and the first draw of the null more than what decides.

        What does not decide is measured of them where there is context.
        """
        first = reference.role is Role.IDEAL or (repeat == 0 and reference is self._repeats.null(reference))
        return evaluate(self._every if first else self._deciding, self._at(values))

    def _at(self, values: OwnValues) -> MeasureInput:
        return MeasureInput(values.heads, self._keys, self.predicted, self._seed, values)


def _of_network(heads: Heads, reference: Reference, selection: Selection) -> Iterator[Measured]:
    keys, values = KeyKernel(heads, selection.protocol), OwnValues(heads)
    for theory in possible_theories(selection, heads):
        at = MeasureInput(heads, keys, PredictedValues(keys, theory), selection.seed, values)
        yield RowKey(theory.name, reference.name), evaluate(comparing_measures(selection, theory, heads), at)


class _Repeats:
    """How often references are drawn: the first null that applies as often as asked for, since its spread counts."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._null: Reference | None = None

    def may_be_null(self, reference: Reference) -> bool:
        """Whether this is the null, or none before it applied."""
        return reference.role is Role.NULL and self._null in (None, reference)

    def of(self, reference: Reference) -> range:
        """The repeats of a reference."""
        return range(self._selection.repeats if reference.random and self.may_be_null(reference) else 1)

    def null(self, reference: Reference) -> Reference | None:
        """The null of these heads, to which this reference applies."""
        if reference.role is Role.NULL and self._null is None:
            self._null = reference
        return self._null


def _guards(selection: Selection, theory: Theory, heads: Heads) -> list[Measure]:
    """What scores need to know of observed heads, whatever is asked for; there are no scores without references."""
    if not selection.references:
        return []
    if impossible(theory, heads):
        return [POSSIBLE]
    return [] if IDENTIFIABLE in selection.measures else [IDENTIFIABLE]
