"""How scores are to be read: what noise does to planted values, and what is left of scores in other gauges.

Both are tried on few inputs, while these are measured, so that their keys are solved and their values predicted once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.applying import comparing_measures
from attnaudit.measures.batches import batches
from attnaudit.measures.evaluation import Measured, evaluate, joined
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import MeasureInput, OwnValues, PredictedValues
from attnaudit.measures.references.base import ReferenceInput, with_values
from attnaudit.measures.references.planted import NOISES, PLANTED_WITH_NOISE
from attnaudit.measures.references.planted import values as planted_values
from attnaudit.measures.references.random_projection import RANDOM_PROJECTION
from attnaudit.measures.references.reparametrised import (
    GAUGES,
    REPARAMETRISED,
    REPARAMETRISED_NULL,
    reparametrised,
)
from attnaudit.measures.selection import Selection
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.theories.base import impossible, no_prediction, same_in_every_gauge


def measure_sensitivity(
    keys: KeyKernel,
    selection: Selection,
    tried: Sequence[str],
    predictions: Sequence[PredictedValues] = (),
) -> Iterator[Measurement]:
    """Noise on the inputs of a batch that are to be `tried`, and other gauges on the first of these.

    `predictions` are what theories predict for the batch, as far as it is known already.
    """
    known = {own.theory.name: own for own in predictions}
    possible = [theory for theory in selection.predicting if not impossible(theory, keys.heads)]
    predicted = [known.get(theory.name) or PredictedValues(keys, theory) for theory in possible]
    if PLANTED_WITH_NOISE in selection.references and (places := _places(keys.heads, tried)):
        some = keys.among(places)
        own = [PredictedValues(some, each.theory, each.prediction.among(places)) for each in predicted]
        yield from joined(some.heads, [_with_noise(some, own, selection)], selection.protocol)
    if REPARAMETRISED in selection.references and (places := _places(keys.heads, tried[:1])):
        yield from _in_all_gauges(keys.heads.among(places), predicted, places, selection)


def _places(heads: Heads, inputs: Collection[str]) -> list[int]:
    return [place for place, entry in enumerate(heads.index) if entry.input in inputs]


def _with_noise(keys: KeyKernel, predictions: Sequence[PredictedValues], selection: Selection) -> Iterator[Measured]:
    for predicted in predictions:
        given = ReferenceInput(keys.heads, predicted.prediction, None, selection.seed)
        measures = comparing_measures(selection, predicted.theory, keys.heads)
        for place, noise in enumerate(NOISES):
            at = MeasureInput(with_values(keys, planted_values(given, noise)), keys, predicted, selection.seed)
            yield RowKey(predicted.theory.name, PLANTED_WITH_NOISE.name, place), evaluate(measures, at)


def _in_all_gauges(
    heads: Heads, predictions: Sequence[PredictedValues], places: Sequence[int], selection: Selection
) -> Iterator[Measurement]:
    """Heads, which are at these places of a batch, in all gauges at once, with a repeat for each gauge."""
    gauges = Heads.cat([reparametrised(heads, selection.seed, repeat) for repeat in range(GAUGES)])
    repeated, begin, found = [*places] * GAUGES, 0, []
    for batch, _ in batches(gauges, None):
        keys, mine = KeyKernel(batch, selection.protocol), repeated[begin : begin + len(batch)]
        begin += len(batch)
        own = [PredictedValues(keys, each.theory, _in_any_gauge(each, mine)) for each in predictions]
        found.append(list(_in_gauges(keys, own, selection)))
    for measured in joined(gauges, found, selection.protocol):
        for repeat in range(GAUGES):
            rows = slice(repeat * len(heads), (repeat + 1) * len(heads))
            yield replace(
                measured,
                heads=heads,
                key=replace(measured.key, repeat=repeat),
                values={name: values[rows] for name, values in measured.values.items()},
                problems={name: problems[rows] for name, problems in measured.problems.items()},
            )


def _in_any_gauge(predicted: PredictedValues, places: Sequence[int]) -> Prediction | None:
    """What is predicted for the heads at these places, if it is the same in every gauge."""
    return predicted.prediction.among(places) if same_in_every_gauge(predicted.theory) else None


def _in_gauges(keys: KeyKernel, predictions: Sequence[PredictedValues], selection: Selection) -> Iterator[Measured]:
    unused = no_prediction(keys.heads, "it is not needed")
    null = RANDOM_PROJECTION.apply(ReferenceInput(keys.heads, unused, None, selection.seed), keys)
    values = {REPARAMETRISED.name: keys.heads, REPARAMETRISED_NULL.name: null}
    compared = {name: OwnValues(heads) for name, heads in values.items() if heads is not None}
    for predicted in predictions:
        measures = comparing_measures(selection, predicted.theory, keys.heads)
        for name, own in compared.items():
            at = MeasureInput(own.heads, keys, predicted, selection.seed, own)
            yield RowKey(predicted.theory.name, name), evaluate(measures, at)
