"""From captured layers to rows: every theory and reference on every head, with one spectrum per head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch
from torch import Tensor

from attnaudit.audit.batches import batches, joined_layers, with_following
from attnaudit.audit.settings import AuditSettings
from attnaudit.capture.heads import Heads
from attnaudit.measures import Evaluation, KeySide, Scope, evaluate
from attnaudit.measures.evaluation import TheorySide
from attnaudit.measures.references import REFERENCES, UNTRAINED, Situation
from attnaudit.records.schema import OBSERVED, rows
from attnaudit.theories.registry import Theory

#: What a theory other than the first is measured with: enough to rank it.
RANKING_FAMILIES = ("columns", "span", "cka")


@dataclass(frozen=True)
class RowKey:
    """What a batch of heads was held to, and with whose values."""

    theory: str
    reference: str = OBSERVED
    repeat: int = 0


@dataclass(frozen=True)
class Measurement:
    """The measures of one batch of heads under one key, and why some are missing."""

    key: RowKey
    values: Mapping[str, Tensor]
    problems: Sequence[str | None]


def observed_rows(
    layers: Iterable[Heads], theories: Sequence[Theory], settings: AuditSettings, solved: Counter[str] | None = None
) -> Iterator[pa.Table]:
    """The heads as they are, and with the values of every reference that shares their keys.

    Layers are taken one by one, and none but the first is held for longer than it and the one before it need. `solved`
    counts heads by the eigen-solver that was used.
    """
    solved = Counter() if solved is None else solved
    for heads, following in with_following(joined_layers(layers)):
        found = (_observed(batch, other, theories, settings, solved) for batch, other in batches(heads, following))
        yield from _joined(heads, found, settings)


def untrained_rows(layers: Iterable[Heads], theories: Sequence[Theory], settings: AuditSettings) -> Iterator[pa.Table]:
    """The heads of the untrained twin, under the name of that reference."""
    for heads in joined_layers(layers):
        found = (_untrained(batch, theories, settings) for batch, _ in batches(heads, None))
        yield from _joined(heads, found, settings)


def _joined(heads: Heads, found: Iterable[Iterable[Measurement]], settings: AuditSettings) -> Iterator[pa.Table]:
    """Rows of a layer from what its batches gave, key by key, whatever the number of batches."""
    parts: dict[RowKey, list[Measurement]] = {}
    for batch in found:
        for measurement in batch:
            parts.setdefault(measurement.key, []).append(measurement)
    for key, measured in parts.items():
        values = {name: torch.cat([part.values[name] for part in measured]) for name in measured[0].values}
        problems = [problem for part in measured for problem in part.problems]
        yield rows(
            heads,
            values,
            problems,
            settings.protocol,
            theory=key.theory,
            reference=key.reference,
            repeat=key.repeat,
        )


def _observed(
    heads: Heads, other: Heads | None, theories: Sequence[Theory], settings: AuditSettings, solved: Counter[str]
) -> Iterator[Measurement]:
    keys = KeySide(heads, settings.protocol)
    for place, theory in enumerate(theories):
        side = keys.predict(theory)
        yield _measured(heads, side, RowKey(theory.name), settings, first=place == 0)
        yield from _referenced(heads, side, other, settings, first=place == 0)
    solved.update(keys.solvers)


def _untrained(heads: Heads, theories: Sequence[Theory], settings: AuditSettings) -> Iterator[Measurement]:
    keys = KeySide(heads, settings.protocol)
    for place, theory in enumerate(theories):
        key = RowKey(theory.name, UNTRAINED)
        yield _measured(heads, keys.predict(theory), key, settings, first=place == 0)


def _referenced(
    heads: Heads, side: TheorySide, other: Heads | None, settings: AuditSettings, *, first: bool
) -> Iterator[Measurement]:
    for name in settings.references:
        if name == UNTRAINED:
            continue
        reference = REFERENCES[name]
        for repeat in range(settings.repeats if reference.random else 1):
            situation = Situation(heads, side.prediction, other, settings.seed, repeat)
            changed = reference.apply(situation)
            if changed is not None:
                key = RowKey(side.theory.name, name, repeat)
                yield _measured(changed, side, key, settings, first=first)


def _measured(heads: Heads, side: TheorySide, key: RowKey, settings: AuditSettings, *, first: bool) -> Measurement:
    """Measures of the keys once, of the values for the first theory, of the prediction for all."""
    evaluation = Evaluation(heads, side.keys, side, settings.seed)
    if first:
        shared = key.reference not in (OBSERVED, UNTRAINED)
        scopes = (Scope.VALUES, Scope.PREDICTION) if shared else tuple(Scope)
        values = evaluate(evaluation, settings.families, scopes)
    else:
        values = evaluate(evaluation, [name for name in RANKING_FAMILIES if name in settings.families])
    return Measurement(key, values, evaluation.problems)
