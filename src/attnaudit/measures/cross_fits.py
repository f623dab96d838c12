"""Fitted theories on every head and its references: fitted to one half of the inputs, measured on the other, both ways.

Two passes over the inputs. The first adds up what the fits need, for the heads as they are and with every reference of
the theory: what is fitted to the observed heads is fitted to its null and to planted heads in the same way. The second
measures each input with what was fitted to the other half.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.gram import finite_heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.evaluation import Numbers, evaluate
from attnaudit.measures.identifiability import IDENTIFIABLE, POSSIBLE
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.measures.references import Reference, ReferenceInput
from attnaudit.measures.references.planted import NOISES, PLANTED, PLANTED_WITH_NOISE
from attnaudit.measures.registry import MEASURES
from attnaudit.measures.selection import Selection
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import OBSERVED, Measurement, RowKey
from attnaudit.theories.base import impossible, no_prediction
from attnaudit.theories.fitting import Fitted, FittedTheory, Fitting, NothingToFit
from attnaudit.theories.planting import noise_of_heads

#: What a fit belongs to: reference and repeat with the theory, heads of a layer, half.
_Place = tuple[RowKey, tuple[tuple[int, int], ...], int]


@dataclass(frozen=True)
class _Index:
    """What rows have to know of heads that were measured."""

    index: tuple[HeadId, ...]
    tokens: int
    dim: int


class _Row:
    """The heads of one input, and their references, which several theories share."""

    def __init__(self, keys: KeyKernel) -> None:
        self.keys, self.heads = keys, keys.heads
        self._found: dict[tuple[str, int], Heads | None] = {}

    def reference(self, reference: Reference | None, seed: int, repeat: int) -> Heads | None:
        """The heads with what a reference says; None if it does not apply, or was not asked for."""
        if reference is None:
            return None
        key = reference.name, repeat
        if key not in self._found:
            unused = no_prediction(self.heads, "it is not needed")
            given = ReferenceInput(self.heads, unused, None, seed, repeat)
            self._found[key] = reference.apply(given, self.keys, for_fits=True)
        return self._found[key]


class CrossFits:
    """Fits theories to halves of the inputs, and measures the other halves.

    Args:
        selection: theories, references, seed and repeats.
        halves: 0 or 1 for every input, by name.
        sample: the inputs on which planted heads are also measured with noise.
    """

    def __init__(self, selection: Selection, halves: Mapping[str, int], sample: Collection[str] = ()) -> None:
        self._theories = [theory for theory in selection.theories if isinstance(theory, FittedTheory)]
        self._selection, self._halves, self._sample = selection, halves, sample
        self._references = {reference.name: reference for reference in selection.references}
        self._fittings: dict[_Place, Fitting] = {}
        self._fits: dict[_Place, Fitted] = {}

    def add(self, keys: KeyKernel) -> None:
        """Take the heads of some inputs into account."""
        fitted = [theory for theory in self._theories if not isinstance(theory.fitting(), NothingToFit)]
        for row in _rows(keys.heads):
            for theory in (each for each in fitted if not impossible(each, row.heads)):
                for key, changed in self._variants(theory, row):
                    place = key, _names(changed), self._halves[changed.index[0].input]
                    if _intact(changed):
                        if place not in self._fittings:
                            self._fittings[place] = theory.fitting()
                        self._fittings[place].add(changed)

    def fit(self) -> None:
        """End the first pass."""
        self._fits = {place: fitting.finish() for place, fitting in self._fittings.items()}
        self._fittings.clear()

    def measured(self, keys: KeyKernel) -> Iterator[Measurement]:
        """The second pass: the numbers of some inputs, with what was fitted to the other half."""
        found: dict[RowKey, list[tuple[Heads, dict[str, Numbers]]]] = {}
        for row in _rows(keys.heads):
            for theory in self._theories:
                for key, numbers in self._of_row(theory, row):
                    found.setdefault(key, []).append((row.heads, numbers))
        for key, parts in found.items():
            yield _joined(key, parts, self._selection.protocol)

    def _of_row(self, theory: FittedTheory, row: _Row) -> Iterator[tuple[RowKey, dict[str, Numbers]]]:
        heads, keys = row.heads, row.keys
        if impossible(theory, heads):
            at = MeasureInput(heads, keys, PredictedValues(keys, theory))
            yield RowKey(theory.name), evaluate([POSSIBLE], at)
            return
        measures = measures_of(theory, self._selection)
        planted: tuple[Heads, Prediction] | None = None
        for key, changed in self._variants(theory, row):
            prediction = self._predicted(theory, key, changed)
            if key.reference == OBSERVED:
                observed = prediction
            if key.reference == PLANTED.name:
                planted = changed, prediction
            guards = [IDENTIFIABLE] if key.reference == OBSERVED else []
            yield key, evaluate([*measures, *guards], _input(theory, keys, changed, prediction))
        if planted is None and self._asked(PLANTED.name) and _intact(heads):
            planted = _as_predicted(heads, observed), observed
            yield RowKey(theory.name, PLANTED.name), evaluate(measures, _input(theory, keys, *planted))
        if planted is not None and heads.index[0].input in self._sample and self._asked(PLANTED_WITH_NOISE.name):
            for place, noise in enumerate(NOISES):
                disturbed = _with_noise(planted[0], noise, self._selection.seed)
                at = _input(theory, keys, disturbed, self._again(theory, disturbed, planted[1]))
                yield RowKey(theory.name, PLANTED_WITH_NOISE.name, place), evaluate(measures, at)

    def _again(self, theory: FittedTheory, disturbed: Heads, prediction: Prediction) -> Prediction:
        """What is predicted for planted heads with noise: a theory without parameters predicts from the values."""
        fitting = theory.fitting()
        return fitting.predict(disturbed) if isinstance(fitting, NothingToFit) else prediction

    def _predicted(self, theory: FittedTheory, key: RowKey, heads: Heads) -> Prediction:
        if not _intact(heads):
            return no_prediction(heads, "this input has heads that are not finite")
        fitting = theory.fitting()
        if isinstance(fitting, NothingToFit):
            return fitting.predict(heads)
        fit = self._fits.get((key, _names(heads), 1 - self._halves[heads.index[0].input]))
        return no_prediction(heads, "there are no inputs in the other half") if fit is None else fit.predict(heads)

    def _variants(self, theory: FittedTheory, row: _Row) -> Iterator[tuple[RowKey, Heads]]:
        """The heads as they are, with every reference of the theory, and as planted, where it says how."""
        yield RowKey(theory.name), row.heads
        if not _intact(row.heads):
            return
        null = None
        for name in (*theory.nulls, *theory.context):
            counts = name in theory.nulls and null is None
            for repeat in range(self._selection.repeats if counts else 1):
                changed = row.reference(self._references.get(name), self._selection.seed, repeat)
                if changed is None:
                    break
                null = name if counts else null
                yield RowKey(theory.name, name, repeat), changed
        planted = theory.planted(row.heads, self._selection.seed) if self._asked(PLANTED.name) else None
        if planted is not None:
            yield RowKey(theory.name, PLANTED.name), planted

    def _asked(self, name: str) -> bool:
        return name in self._references


def measures_of(theory: FittedTheory, selection: Selection) -> list[Measure]:
    """What is measured of a fitted theory, whatever other measures are asked for; a user's own are found by name."""
    known = {**MEASURES, **{measure.name: measure for measure in selection.measures}}
    return [known[name] for name in (*theory.measures, *theory.shown)]


def fitted_measures(selection: Selection) -> list[Measure]:
    """The same for all fitted theories, without those that are asked for anyway."""
    theories = [theory for theory in selection.theories if isinstance(theory, FittedTheory)]
    found = {measure.name: measure for theory in theories for measure in measures_of(theory, selection)}
    asked = {measure.name for measure in selection.measures}
    return [measure for name, measure in found.items() if name not in asked]


def _input(theory: FittedTheory, keys: KeyKernel, heads: Heads, prediction: Prediction) -> MeasureInput:
    """What a measure is computed from; heads with other keys have another kernel."""
    same = heads.key is keys.heads.key and heads.query is keys.heads.query
    own = keys if same else KeyKernel(heads)
    return MeasureInput(heads, own, PredictedValues(own, theory, prediction))


def _rows(heads: Heads) -> Iterator[_Row]:
    """The heads of each input with all its windows: an input is in one half."""
    for _, places in groupby(range(len(heads)), key=lambda place: heads.index[place].input):
        own = list(places)
        yield _Row(KeyKernel(heads.part(own[0], own[-1] + 1)))


def _names(heads: Heads) -> tuple[tuple[int, int], ...]:
    """The heads of a layer that are fitted together, whatever the input."""
    return tuple(dict.fromkeys((entry.layer, entry.head) for entry in heads.index))


def _intact(heads: Heads) -> bool:
    """Whether a sum with these heads is finite."""
    parts = (heads.query, heads.key, heads.value, heads.output)
    return all(bool(finite_heads(part).all()) for part in parts)


def _as_predicted(heads: Heads, prediction: Prediction) -> Heads:
    """The heads with the values, or the outputs, that a theory predicts."""
    if prediction.outputs is not None:
        return replace(heads, output=prediction.outputs)
    return replace(heads, value=prediction.values.double() * torch.exp(prediction.log_scale)[:, None, None])


def _with_noise(heads: Heads, noise: float, seed: int) -> Heads:
    """(1-ε)V + ε·noise and the same for outputs, noise scaled by column."""

    def disturbed(tensor: Tensor, what: str) -> Tensor:
        exact = tensor.double()
        drawn = noise_of_heads(heads, tuple(exact.shape[1:]), f"{seed}/noise/{what}").to(exact)
        size, drawn_size = (torch.linalg.vector_norm(own, dim=1, keepdim=True) for own in (exact, drawn))
        found: Tensor = (1 - noise) * exact + noise * drawn * (size / drawn_size)
        return found

    return replace(heads, value=disturbed(heads.value, "values"), output=disturbed(heads.output, "outputs"))


def _joined(key: RowKey, parts: list[tuple[Heads, dict[str, Numbers]]], protocol: Protocol) -> Measurement:
    """What the inputs of a batch gave, as one."""
    index = tuple(entry for heads, _ in parts for entry in heads.index)
    numbers = [own for _, own in parts]
    names = list(numbers[0])
    return Measurement(
        _Index(index, parts[0][0].tokens, parts[0][0].dim),
        key,
        {name: torch.cat([own[name].values for own in numbers]) for name in names},
        {name: [problem for own in numbers for problem in own[name].problems] for name in names},
        protocol,
    )
