"""What the page shows of a head that is opened: its measures among references, and its views, if they were kept."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.display import shortened
from attnaudit.records.audit_summary import ReferenceWords
from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_views import HeadView, InputView
from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.quantised import QuantisedRows
from attnaudit.records.schema import Role
from attnaudit.report.page.maps import head_map
from attnaudit.report.page.numbers import compact
from attnaudit.report.references import reference_kinds

_KINDS = ("observed", Role.NULL.value, Role.CEILING.value, Role.IDEAL.value)


@dataclass(frozen=True)
class ReferenceMeans:
    """The mean over inputs of every head with the values of one reference, a row per layer."""

    kind: str
    reference: str
    layers: list[int]
    mean: list[list[float | None]]


@dataclass(frozen=True)
class HeadScale:
    """A measure of every head between chance and the claim; the first reference of each kind is enough."""

    measure: str
    theory: str
    means: list[ReferenceMeans]


def head_scales(
    heads: MeasuredHeads,
    model: str,
    deciding: Iterable[tuple[str, str]],
    references: Mapping[str, ReferenceWords],
) -> list[HeadScale]:
    """Of the measures that decide, as (measure, theory)."""
    scales = []
    for measure, theory in deciding:
        group = Group(model, theory, measure)
        means: dict[str, ReferenceMeans] = {}
        for reference, kind in reference_kinds(references).items():
            if kind in _KINDS and kind not in means:
                own = head_map(heads.means(group, reference))
                if not own.is_empty:
                    means[kind] = ReferenceMeans(kind, reference, own.layers, own.mean)
        scales.append(HeadScale(measure, theory, list(means.values())))
    return scales


def drawn_views(views: Sequence[InputView]) -> list[dict[str, Any]]:
    """For the script: pictures and maps as base64."""
    return [
        {
            "input": shortened(view.input, 60),
            "picture": None if view.picture is None else base64.b64encode(view.picture).decode(),
            "tokens": view.tokens and [shortened(token, 40) for token in view.tokens],
            "note": view.note,
            "heads": [_drawn(head) for head in view.heads],
        }
        for view in views
    ]


def _drawn(head: HeadView) -> dict[str, Any]:
    kept = {name: _rows(getattr(head, name)) for name in ("attention", "block", "columns")}
    numbers = {name: [compact(number) for number in getattr(head, name)] for name in ("eigenvalues", "cosines")}
    bound = None if head.bound is None else compact(head.bound)
    return {**vars(head), **kept, **numbers, "bound": bound, "problem": shortened(head.problem)}


def _rows(rows: QuantisedRows | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    low, high = ([compact(float(number)) for number in own] for own in (rows.low, rows.high))
    return {"codes": base64.b64encode(rows.codes.tobytes()).decode(), "low": low, "high": high}
