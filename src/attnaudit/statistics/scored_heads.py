"""From the rows of one measure to scores: where does a head lie between a network that knows nothing and the theory?

Per head and input, in the measure's own direction,

    score    = (observed - null) / (planted - null),
    reach    = (best projection - null) / (planted - null),
    realised = (observed - null) / (best projection - null).

The null is the mean over repeats of `random_projection`, or of `rotated` where the inputs of the layer are not known.
So what a measure says of a head that knows nothing, and of one for which the theory is exactly true, is taken from the
same head and input. A row in which planted values are no closer than the null, by more than rounding, is uninformative,
and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnaudit.measures import REFERENCES, Measure, Reference
from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.references.planted import NOISES, PLANTED_WITH_NOISE
from attnaudit.measures.references.random_projection import RANDOM_PROJECTION
from attnaudit.measures.references.reparametrised import REPARAMETRISED, REPARAMETRISED_NULL
from attnaudit.measures.references.rotated import ROTATED
from attnaudit.records.head_values import HeadTable, Numbers
from attnaudit.records.moments import Moments
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.records.scored_heads import ScoredHead, ScoredHeads, ScoredLayer
from attnaudit.statistics.huge import mean, shrinkage
from attnaudit.statistics.rows import Rows, grouped

#: A contrast below this share of the numbers that it is a difference of is rounding.
_ROUNDING = 1e-9


def scored_heads(table: HeadTable, measure: Measure, references: Mapping[str, Reference] = REFERENCES) -> ScoredHeads:
    """The scores of a measure over inputs, for all heads together and for each, and what a network could reach.

    `references` says what the columns of the table are for. Of several nulls or ideals the first counts.
    """
    columns = _Columns.of(table, -1.0 if measure.closer == "lower" else 1.0)
    null_name, ideal_name = (columns.first(references, role) for role in (Role.NULL, Role.IDEAL))
    observed, planted = columns[OBSERVED], columns[ideal_name or ""]
    null, null_draws = columns.null(null_name or "")
    known = np.isfinite(observed) & np.isfinite(planted) & np.isfinite(null)
    contrast = np.where(known, planted - null, np.nan)
    informative = known & (contrast > _ROUNDING * np.maximum(np.abs(planted), np.abs(null)))
    missing = ScoredHeads(
        uninformative=int((known & ~informative).sum()),
        rejected=int((~known).sum()),
        unidentifiable=table.unidentifiable,
        unscored=table.never + len(table.names) - len(np.unique(table.heads[informative])),
        impossible=table.impossible,
        null=null_name,
    )
    if null_name is None or not informative.any():
        return missing
    rows = Rows(table.inputs[informative], table.heads[informative])

    def scored(values: Numbers) -> Numbers:
        with np.errstate(over="ignore"):
            found: Numbers = ((values[informative].T - null[informative]) / contrast[informative]).T
        return found

    scores = scored(observed)
    ceilings = (BEST_PROJECTION.name, BEST_PROJECTION_FITTED.name) if measure.has_ceiling else ("", "")
    reach, fitted = (scored(columns[name]) for name in ceilings)
    reached, refined = np.isfinite(reach), np.isfinite(fitted)  # some inputs only
    return replace(
        missing,
        inputs=len(np.unique(rows.inputs)),
        informative=int(informative.sum()),
        all=rows.average(scores),
        layers=tuple(_layers(table, rows, scores)),
        heads=tuple(_heads(table, rows, scores)),
        offset=rows.offset(scored(null_draws)),
        reach=rows.among(reached).by_input(reach[reached]),
        fitted_reach=rows.among(refined).by_input(fitted[refined]),
        realised=rows.among(reached).ratio(scores[reached], reach[reached]),
        noise=_with_noise(scored(columns.repeats(PLANTED_WITH_NOISE.name))),
        gauges=_range(
            columns.repeats(REPARAMETRISED.name)[informative],
            columns.repeats(REPARAMETRISED_NULL.name)[informative],
            planted[informative, None],
        ),
        means=columns.means(informative),
    )


@dataclass(frozen=True)
class _Columns:
    """The columns of a table, higher being closer to the theory; made smaller if differences could overflow."""

    table: HeadTable
    factor: float

    @staticmethod
    def of(table: HeadTable, sign: float) -> _Columns:
        return _Columns(table, sign * shrinkage(*table.references.values()))

    def __getitem__(self, name: str) -> Numbers:
        """The means over repeats of a reference; NaN if there is none of that name."""
        own = self.table.references.get(name)
        return np.full(len(self.table), np.nan) if own is None else self.factor * own

    def repeats(self, name: str) -> Numbers:
        """The same with a column for every repeat."""
        own = self.table.repeats.get(name)
        return np.full((len(self.table), 1), np.nan) if own is None else self.factor * own

    def first(self, references: Mapping[str, Reference], role: Role) -> str | None:
        """The first reference of a role that has a number."""
        named = (name for name, reference in references.items() if reference.role is role)
        return next((name for name in named if np.isfinite(self[name]).any()), None)

    def null(self, name: str) -> tuple[Numbers, Numbers]:
        """The means and repeats of the null, which is another one where the inputs of the layer are not known."""
        means, draws = self[name], self.repeats(name)
        if name != RANDOM_PROJECTION.name:
            return means, draws
        unknown, other = ~np.isfinite(means), self.repeats(ROTATED.name)
        wide = np.full((len(means), max(draws.shape[1], other.shape[1])), np.nan)
        wide[:, : draws.shape[1]] = draws
        wide[unknown, : other.shape[1]] = other[unknown]
        return np.where(unknown, self[ROTATED.name], means), wide

    def means(self, rows: NDArray[np.bool_]) -> dict[str, float]:
        """The measure itself, by reference, where these rows have it."""
        found = {name: self[name][rows] for name in self.table.references}
        found = {name: own[np.isfinite(own)] for name, own in found.items()}
        return {name: mean(own) / self.factor for name, own in found.items() if len(own)}


def _layers(table: HeadTable, rows: Rows, scores: Numbers) -> Iterator[ScoredLayer]:
    """Every layer over its heads and inputs."""
    layer_of_row = np.array([table.names[head].layer for head in rows.heads])
    for layer in np.unique(layer_of_row):
        own = layer_of_row == layer
        found = rows.among(own).average(scores[own])
        if found is not None:
            yield ScoredLayer(int(layer), found)


def _heads(table: HeadTable, rows: Rows, scores: Numbers) -> Iterator[ScoredHead]:
    """Every head over its inputs."""
    for head in np.unique(rows.heads):
        own = rows.heads == head
        yield ScoredHead(table.names[head], Moments.of(grouped(scores[own], rows.inputs[own])))


def _with_noise(curve: Numbers) -> tuple[float, ...]:
    """The mean score of planted values at each share of noise; empty if it was not tried, NaN if it has no number."""
    if curve.shape[1] != len(NOISES):
        return ()
    measured = curve[np.isfinite(curve).all(axis=1)]
    return tuple(measured.mean(axis=0).tolist()) if len(measured) else (np.nan,) * len(NOISES)


def _range(observed: Numbers, null: Numbers, planted: Numbers) -> tuple[float, float] | None:
    """The smallest and largest mean score of a column; None without rows that are informative in all of them."""
    scores = (observed - null) / np.where(planted > null, planted - null, np.nan)
    measured = scores[np.isfinite(scores).all(axis=1)]
    return (float(measured.mean(axis=0).min()), float(measured.mean(axis=0).max())) if len(measured) else None
