"""HeadSummaries in place of rows: the heads that the rows of a model gave before they were removed.

All but one are the very numbers that rows give. The exception are the dots of distributions, which come from sketches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_values import HeadName, HeadTable
from attnaudit.records.measured_heads import Distribution, Distributions, HeadMeans, LayerQuartiles, MeasuredHeads
from attnaudit.records.moments import Moments, Offset
from attnaudit.records.schema import OBSERVED, POSSIBLE
from attnaudit.records.scored_heads import Average, RatioOfMeans, ScoredHead, ScoredHeads, ScoredLayer
from attnaudit.records.sketch import OrderedValues, Sketch
from attnaudit.records.summary_rows import Entry, SummaryRows, entries

_COUNTS = ("inputs", "informative", "uninformative", "rejected", "unidentifiable", "unscored")
_OF_HEADS = ("mean", "deviation", "counted", "missing")
_OF_LAYERS = ("mean", "lower", "middle", "upper")


class HeadSummaries:
    """Looks every answer up."""

    def __init__(self, rows: SummaryRows) -> None:
        self.rows = rows

    @property
    def words(self) -> str:
        """How many numbers there are."""
        count = sum(len(own) for group in self.rows.groups.values() for own in group.values())
        return f"{count:,} numbers that summarise the evidence"

    def measured(self) -> Sequence[Group]:
        """Every model, theory and measure that had rows."""
        return list(self.rows.groups)

    def scored(self, group: Group, scored: Callable[[HeadTable], ScoredHeads]) -> ScoredHeads:
        """The scores as they were; what had no rows has none."""
        rows = self.rows
        excluded = rows.of(group._replace(measure=POSSIBLE), "score.impossible")
        impossible = {str(own.text): int(own.value) for own in excluded}
        if group not in rows.groups:
            return ScoredHeads(impossible=impossible)
        gauges = [rows.of(group, f"score.gauges.{end}") for end in ("low", "high")]
        means = {str(own.reference): own.value for own in rows.of(group, "score.mean_of_reference")}
        return ScoredHeads(
            **{name: rows.count(group, f"score.{name}") for name in _COUNTS},
            impossible=impossible,
            null=next((own.text for own in rows.of(group, "score.null")), None),
            all=rows.one(group, "score.all", Average),
            layers=tuple(
                ScoredLayer(layer, own) for (layer,), own in rows.each(group, "layer_score", Average, "layer").items()
            ),
            heads=tuple(
                ScoredHead(HeadName(*head), own)
                for head, own in rows.each(group, "head_score", Moments, "layer", "head").items()
            ),
            offset=rows.one(group, "score.offset", Offset),
            reach=rows.one(group, "score.reach", Moments),
            fitted_reach=rows.one(group, "score.fitted_reach", Moments),
            realised=rows.one(group, "score.realised", RatioOfMeans),
            noise=tuple(own.value for own in rows.of(group, "score.noise")),
            gauges=(gauges[0][0].value, gauges[1][0].value) if all(gauges) else None,
            means=means or None,
        )

    def means(self, group: Group, reference: str = OBSERVED) -> HeadMeans:
        """Those of a reference whose heads were summarised; otherwise there is no head."""
        found = {
            name: [own for own in self.rows.of(group, f"head.{name}") if own.reference == reference]
            for name in _OF_HEADS
        }
        layers, heads = (np.array([getattr(own, name) for own in found["mean"]], int) for name in ("layer", "head"))
        mean, deviation, counted, missing = (np.array([own.value for own in found[name]]) for name in _OF_HEADS)
        inputs = next((own.value for own in self.rows.of(group, "head.inputs") if own.reference == reference), 0)
        return HeadMeans(int(inputs), layers, heads, mean, deviation, counted.astype(int), missing.astype(int))

    def layer_quartiles(self, group: Group) -> LayerQuartiles:
        """As they were."""
        found = {name: self.rows.of(group, f"layer.{name}") for name in _OF_LAYERS}
        layers = [own.layer or 0 for own in found["mean"]]
        return LayerQuartiles(layers, *([own.value for own in found[name]] for name in _OF_LAYERS))

    def distributions(self, group: Group) -> Distributions:
        """As they were, with the sketch in place of the values."""
        found = self.rows.each(group, "values", Distribution, "reference")
        heads, unidentifiable = (self.rows.count(group, f"values.{name}") for name in ("heads", "unidentifiable"))
        return Distributions(
            heads,
            unidentifiable,
            {str(name): replace(own, values=self._sketch(group, str(name))) for (name,), own in found.items()},
        )

    def _sketch(self, group: Group, reference: str) -> Sketch | None:
        positive, negative = (
            {int(own.place or 0): int(own.value) for own in self.rows.of(group, name) if own.reference == reference}
            for name in ("values.positive", "values.negative")
        )
        low, high, zeros = (
            next((own.value for own in self.rows.of(group, name) if own.reference == reference), None)
            for name in ("values.low", "values.high", "values.zeros")
        )
        return None if low is None or high is None else Sketch(low, high, int(zeros or 0), positive, negative)


def summarised(
    heads: MeasuredHeads,
    group: Group,
    scored: Callable[[HeadTable], ScoredHeads],
    by_role: Iterable[Sequence[str]],
    drawn: Collection[str],
) -> SummaryRows:
    """Every answer of rows about a group.

    Args:
        heads: of the rows.
        group: of one model, theory and measure.
        scored: how its heads are scored.
        by_role: references, the first of each list with numbers is summarised head by head, as observed heads are.
        drawn: those of which the distribution is kept.
    """
    rows = SummaryRows()
    _add_scores(rows, group, heads.scored(group, scored))
    _add_means(rows, group, OBSERVED, heads.means(group))
    for references in by_role:
        means = {name: heads.means(group, name) for name in references}
        first = next((name for name, own in means.items() if own.counted.any()), None)
        if first is not None:
            _add_means(rows, group, first, means[first])
    quartiles = heads.layer_quartiles(group)
    for name in _OF_LAYERS:
        rows.extend(group, f"layer.{name}", entries(getattr(quartiles, name), layer=quartiles.layers))
    _add_distributions(rows, group, heads.distributions(group), drawn)
    return rows


def _add_means(rows: SummaryRows, group: Group, reference: str, found: HeadMeans) -> None:
    if len(found.heads):
        rows.add(group, "head.inputs", Entry(found.inputs, reference))
    references = [reference] * len(found.heads)
    where = {"reference": references, "layer": found.layers.tolist(), "head": found.heads.tolist()}
    for name in _OF_HEADS:
        rows.extend(group, f"head.{name}", entries(getattr(found, name), **where))


def _add_scores(rows: SummaryRows, group: Group, found: ScoredHeads) -> None:
    for name in _COUNTS:
        rows.add(group, f"score.{name}", Entry(getattr(found, name)))
    if group.measure == POSSIBLE:  # the same for all measures
        rows.extend(group, "score.impossible", entries(found.impossible.values(), text=found.impossible))
    if found.null is not None:
        rows.add(group, "score.null", Entry(1, text=found.null))
    for name in ("all", "offset", "reach", "fitted_reach", "realised"):
        rows.add_fields(group, f"score.{name}", getattr(found, name))
    for layer in found.layers:
        rows.add_fields(group, "layer_score", layer.average, layer=layer.layer)
    for head in found.heads:
        rows.add_fields(group, "head_score", head.inputs, layer=head.name.layer, head=head.name.head)
    rows.extend(group, "score.noise", entries(found.noise, place=range(len(found.noise))))
    for end, value in zip(("low", "high"), found.gauges or (), strict=False):
        rows.add(group, f"score.gauges.{end}", Entry(value))
    means = found.means or {}
    rows.extend(group, "score.mean_of_reference", entries(means.values(), reference=means))


def _add_distributions(rows: SummaryRows, group: Group, found: Distributions, drawn: Collection[str]) -> None:
    rows.add(group, "values.heads", Entry(found.heads))
    rows.add(group, "values.unidentifiable", Entry(found.unidentifiable))
    for name in (each for each in drawn if each in found.references):
        own = found.references[name]
        rows.add_fields(group, "values", replace(own, values=None), reference=name)
        sketch = Sketch.of(own.values.values) if isinstance(own.values, OrderedValues) else own.values
        if sketch is not None:
            for part, value in (("low", sketch.low), ("high", sketch.high), ("zeros", sketch.zeros)):
                rows.add(group, f"values.{part}", Entry(value, name))
            for part, buckets in (("positive", sketch.positive), ("negative", sketch.negative)):
                where = {"reference": [name] * len(buckets), "place": buckets}
                rows.extend(group, f"values.{part}", entries(buckets.values(), **where))
