"""From captured layers to rows: every theory and control on every head, with one spectrum per head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from attnaudit.capture.heads import Heads
from attnaudit.evidence.schema import OBSERVED, rows
from attnaudit.evidence.settings import Settings
from attnaudit.kernel.interpretation import Interpretation
from attnaudit.measures import Evaluation, KeySide, Scope, evaluate
from attnaudit.measures.controls import CONTROLS, UNTRAINED, Situation
from attnaudit.measures.evaluation import TheorySide

#: What a theory other than the first is measured with: enough to rank it.
RANKING_FAMILIES = ("columns", "span", "cka")


def observed_rows(
    layers: Sequence[Heads], theories: Sequence[Interpretation], settings: Settings
) -> Iterator[pa.Table]:
    """The heads as they are, and with the values of every control that shares their keys."""
    for number, heads in enumerate(layers):
        keys = KeySide(heads, settings.protocol)
        other = layers[(number + 1) % len(layers)] if len(layers) > 1 else None
        for place, theory in enumerate(theories):
            side = keys.predict(theory)
            yield _measured(heads, keys, side, theory, settings, first=place == 0)
            yield from _control_rows(heads, keys, side, theory, other, settings, first=place == 0)


def untrained_rows(
    layers: Sequence[Heads], theories: Sequence[Interpretation], settings: Settings
) -> Iterator[pa.Table]:
    """The heads of the untrained twin, under the name of that control."""
    for heads in layers:
        keys = KeySide(heads, settings.protocol)
        for place, theory in enumerate(theories):
            yield _measured(heads, keys, keys.predict(theory), theory, settings, first=place == 0, control=UNTRAINED)


def _control_rows(
    heads: Heads,
    keys: KeySide,
    side: TheorySide,
    theory: Interpretation,
    other: Heads | None,
    settings: Settings,
    *,
    first: bool,
) -> Iterator[pa.Table]:
    for name in settings.controls:
        if name == UNTRAINED:
            continue
        control = CONTROLS[name]
        for repeat in range(settings.repeats if control.random else 1):
            situation = Situation(heads, side.prediction, other, settings.seed, repeat)
            changed = control.apply(situation)
            if changed is not None:
                yield _measured(changed, keys, side, theory, settings, first=first, control=name, repeat=repeat)


def _measured(
    heads: Heads,
    keys: KeySide,
    side: TheorySide,
    theory: Interpretation,
    settings: Settings,
    *,
    first: bool,
    control: str = OBSERVED,
    repeat: int = 0,
) -> pa.Table:
    """Rows of one batch: measures of the keys once, of the values for the first theory, of the prediction for all."""
    evaluation = Evaluation(heads, keys, side, settings.seed)
    if first:
        shared = control not in (OBSERVED, UNTRAINED)
        scopes = (Scope.VALUES, Scope.PREDICTION) if shared else tuple(Scope)
        values = evaluate(evaluation, settings.families, scopes)
    else:
        values = evaluate(evaluation, [name for name in RANKING_FAMILIES if name in settings.families])
    return rows(
        heads,
        values,
        evaluation.problems,
        settings.protocol,
        interpretation=theory.name,
        control=control,
        repeat=repeat,
    )
