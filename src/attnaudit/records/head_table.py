"""From evidence to the arrays of one measure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attnaudit.records.evidence import Evidence
from attnaudit.records.head_values import HeadTable, Numbers
from attnaudit.records.schema import IDENTIFIABLE, OBSERVED

#: The sum of repeats above this may be beyond float64: they are made smaller by a power of two for it.
_HUGE, _SHRUNK = 2.0**1000, 2.0**-64
_HEAD = ("input", "layer", "head", "window")
_COLUMNS = (*_HEAD, "measure", "reference", "value")


def head_table(evidence: Evidence, model: str, measure: str, theory: str) -> HeadTable:
    """The evidence of one measure as heads x references, averaged over repeats.

    A head that the guard of the theory does not accept cannot decide anything and is left out: see `IDENTIFIABLE`.
    """
    mine = evidence.where(*_COLUMNS, model=model, theory=theory, measure=(measure, IDENTIFIABLE))
    guards = mine.filter(pc.and_(pc.equal(mine["measure"], IDENTIFIABLE), pc.equal(mine["reference"], OBSERVED)))
    rows = mine.filter(pc.equal(mine["measure"], measure))
    keys, radix = _codes(pa.concat_tables([guards, rows]))
    guard_keys, row_keys = keys[: guards.num_rows], keys[guards.num_rows :]
    heads = np.unique(row_keys)
    kept = np.setdiff1d(heads, guard_keys[~np.isfinite(guards["value"].to_numpy(zero_copy_only=False))])
    places = np.searchsorted(kept, row_keys)
    inside = np.isin(row_keys, kept)
    values = rows["value"].to_numpy(zero_copy_only=False)
    references = {
        name: _means(places, values, inside & pc.equal(rows["reference"], name).to_numpy(), len(kept))
        for name in rows["reference"].unique().to_pylist()
    }
    return HeadTable(kept // radix, references, len(heads) - len(kept))


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
    counted = values[mask]
    huge = np.abs(counted).max(initial=0.0) > _HUGE
    totals = np.bincount(places[mask], weights=counted * _SHRUNK if huge else counted, minlength=count)
    numbers = np.bincount(places[mask], minlength=count)
    with np.errstate(invalid="ignore"):
        means: Numbers = np.where(numbers > 0, totals / numbers, np.nan)
    return means / _SHRUNK if huge else means
