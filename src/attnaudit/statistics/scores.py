"""Calibrated scores: where does the observed head lie between chance (0) and the theory (1)?

Per head and measure, in the measure's own direction,

    score = (observed - null) / (planted - null),

null being the best-scoring negative reference of that head (mean over its repeats). What a measure would say of noise
and of a head for which the theory is exactly true is thus taken from the same heads, and a measure that cannot tell the
two apart (AUC below 0.95) has no power and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attnaudit.measures import measure as measure_named
from attnaudit.measures.references import NEGATIVE_REFERENCES, POSITIVE_REFERENCES, UNTRAINED
from attnaudit.records.evidence import Evidence
from attnaudit.records.schema import OBSERVED
from attnaudit.statistics.intervals import bootstrap_interval

POWER = 0.95
Numbers = NDArray[np.float64]
#: The measure that says whether a head can decide anything.
_RANK = "kernel_rank"
_HEAD = ("input", "layer", "head", "window")
_COLUMNS = (*_HEAD, "tokens", "dim", "measure", "theory", "reference", "value")


@dataclass(frozen=True)
class HeadTable:
    """One measure of one model: a row per identifiable head, a column per reference, NaN where it is missing."""

    inputs: NDArray[np.int64]
    references: dict[str, Numbers]
    unidentifiable: int

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class Score:
    """What one measure says of one model; `interval` is None for a single input."""

    measure: str
    mean: float | None
    interval: tuple[float, float] | None
    auc: float | None
    heads: int
    rejected: int
    unidentifiable: int
    observed: float | None = None
    null: float | None = None
    null_name: str | None = None
    planted: float | None = None

    @property
    def has_power(self) -> bool:
        """Whether planted and null heads are told apart."""
        return self.auc is not None and self.auc >= POWER


def score(evidence: Evidence, model: str, measure: str, theory: str, *, level: float, seed: int = 0) -> Score:
    """The calibrated score of a measure, with a bootstrap interval over inputs."""
    table = head_table(evidence, model, measure, theory)
    kind = measure_named(measure)
    sign = -1.0 if kind.closer == "lower" else 1.0
    nothing = Score(measure, None, None, None, 0, len(table), table.unidentifiable)
    negatives = [
        name
        for name in NEGATIVE_REFERENCES
        if name in table.references and not (name == UNTRAINED and kind.in_units_of_the_head)
    ]
    positive = next((name for name in POSITIVE_REFERENCES if name in table.references), None)
    if not len(table) or not negatives or positive is None or OBSERVED not in table.references:
        return nothing
    observed, planted = sign * table.references[OBSERVED], sign * table.references[positive]
    against = np.stack([sign * table.references[name] for name in negatives])
    usable = np.isfinite(observed) & np.isfinite(planted) & np.isfinite(against).any(axis=0)
    if not usable.any():
        return nothing
    against = np.where(np.isfinite(against), against, -np.inf)[:, usable]
    observed, planted, inputs = observed[usable], planted[usable], table.inputs[usable]
    null = against.max(axis=0)
    auc = area_under_curve(planted, null)
    contrast = planted - null
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(contrast > 0, (observed - null) / contrast, np.nan)
    counted = np.isfinite(scores)
    means = np.array([scores[counted & (inputs == i)].mean() for i in np.unique(inputs[counted])])
    commonest = np.bincount(against.argmax(axis=0), minlength=len(negatives)).argmax()
    return Score(
        measure=measure,
        mean=float(means.mean()) if len(means) else None,
        interval=bootstrap_interval(means, seed, level) if len(means) else None,
        auc=auc,
        heads=int(counted.sum()),
        rejected=len(table) - int(counted.sum()),
        unidentifiable=table.unidentifiable,
        observed=float(sign * observed.mean()),
        null=float(sign * null.mean()),
        null_name=negatives[int(commonest)],
        planted=float(sign * planted.mean()),
    )


def head_table(evidence: Evidence, model: str, measure: str, theory: str) -> HeadTable:
    """The evidence of one measure as heads x references, repeats averaged, heads that cannot decide left out."""
    mine = evidence.where(*_COLUMNS, model=model, measure=(measure, _RANK))
    guard = mine.filter(pc.and_(pc.equal(mine["measure"], _RANK), pc.equal(mine["reference"], OBSERVED)))
    rows = mine.filter(pc.and_(pc.equal(mine["measure"], measure), pc.equal(mine["theory"], theory)))
    keys, names = _codes(pa.concat_tables([guard, rows]))
    guard_keys, row_keys = keys[: guard.num_rows], keys[guard.num_rows :]
    tokens, dim = guard["tokens"].to_numpy(), guard["dim"].to_numpy()
    rank = guard["value"].to_numpy(zero_copy_only=False)
    identifiable = guard_keys[(tokens >= 2 * dim) & (rank > dim)]
    heads = np.unique(row_keys)
    kept = np.intersect1d(heads, identifiable)
    places = np.searchsorted(kept, row_keys)
    inside = np.isin(row_keys, kept)
    values = rows["value"].to_numpy(zero_copy_only=False)
    references = {
        name: _means(places, values, inside & pc.equal(rows["reference"], name).to_numpy(), len(kept))
        for name in rows["reference"].unique().to_pylist()
    }
    return HeadTable(kept // names, references, len(heads) - len(kept))


def _codes(rows: pa.Table) -> tuple[NDArray[np.int64], int]:
    """One integer per head, whose quotient by the second result is the input's number."""
    inputs = pc.dictionary_encode(rows["input"].cast(pa.string())).combine_chunks()
    codes = inputs.indices.to_numpy().astype(np.int64) if rows.num_rows else np.zeros(0, np.int64)
    radix = 1
    for name in _HEAD[1:]:
        column = rows[name].to_numpy().astype(np.int64)
        size = int(column.max(initial=0)) + 1
        codes, radix = codes * size + column, radix * size
    return codes, radix


def _means(places: NDArray[np.int64], values: Numbers, mask: NDArray[np.bool_], count: int) -> Numbers:
    mask = mask & np.isfinite(values)
    totals = np.bincount(places[mask], weights=values[mask], minlength=count)
    numbers = np.bincount(places[mask], minlength=count)
    with np.errstate(invalid="ignore"):
        means: Numbers = np.where(numbers > 0, totals / numbers, np.nan)
    return means


def area_under_curve(positive: Numbers, negative: Numbers) -> float:
    """P(a random positive exceeds a random negative), ties counted half (Mann & Whitney 1947)."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    ties = np.searchsorted(ordered, positive, side="right") - below
    return float((below + ties / 2).mean() / len(negative))
