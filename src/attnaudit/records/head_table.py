"""From evidence to the arrays of one measure."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attnaudit.records.evidence import Evidence
from attnaudit.records.head_values import HeadName, HeadTable, Numbers
from attnaudit.records.schema import IDENTIFIABLE, OBSERVED, POSSIBLE

#: The sum of repeats above this may be beyond float64: they are made smaller by a power of two for it.
_HUGE, _SHRUNK = 2.0**1000, 2.0**-64
_HEAD = ("input", "layer", "head", "window")
_COLUMNS = (*_HEAD, "measure", "reference", "repeat", "value", "reason")


def head_table(
    evidence: Evidence, model: str, measure: str, theory: str, groups: Mapping[str, str] | None = None
) -> HeadTable:
    """The evidence of one measure as heads x references.

    Inputs that belong together by `groups` have one number in the column of inputs.

    A head that the guard of the theory does not accept cannot decide anything and is left out (see `IDENTIFIABLE`), and
    so is one of which the theory cannot be true (`POSSIBLE`).
    """
    mine = evidence.where(*_COLUMNS, model=model, theory=theory, measure=(measure, IDENTIFIABLE, POSSIBLE))
    mine, impossible = _without_impossible(mine)
    guards = mine.filter(pc.and_(pc.equal(mine["measure"], IDENTIFIABLE), pc.equal(mine["reference"], OBSERVED)))
    rows = mine.filter(pc.equal(mine["measure"], measure))
    keys, names = _keys(pa.concat_tables([guards, rows]))
    codes = _codes(keys)
    refused = codes[: guards.num_rows][~np.isfinite(guards["value"].to_numpy(zero_copy_only=False))]
    found = np.unique(codes[guards.num_rows :])
    accepted = ~np.isin(codes[guards.num_rows :], refused)
    rows, row_keys = rows.filter(pa.array(accepted)), keys[guards.num_rows :][accepted]
    # Windows of one input and head come to one row.
    _, firsts, place_of_row = np.unique(_codes(row_keys[:, :3]), return_index=True, return_inverse=True)
    places = row_keys[firsts, :3]
    repeats = {
        name: _columns(rows.filter(mask), place_of_row.ravel()[mask.to_numpy(zero_copy_only=False)], len(places))
        for name in rows["reference"].unique().to_pylist()
        for mask in [pc.equal(rows["reference"], name).combine_chunks()]
    }
    _, firsts, head_of_place = np.unique(_codes(places[:, 1:]), return_index=True, return_inverse=True)
    return HeadTable(
        _numbered([(groups or {}).get(name, name) for name in names])[places[:, 0]],
        head_of_place.ravel(),
        tuple(HeadName(int(layer), int(head)) for layer, head in places[firsts, 1:]),
        {name: _mean(columns) for name, columns in repeats.items()},
        repeats,
        int(np.isin(found, refused).sum()),
        impossible,
    )


def _without_impossible(rows: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    """The rows of heads of which the theory can be true, and the number of the others by theorem."""
    marks = rows.filter(pc.and_(pc.equal(rows["measure"], POSSIBLE), pc.invert(pc.is_valid(rows["value"]))))
    if not marks.num_rows:
        return rows, {}
    theorems = dict(zip(_heads(marks), marks["reason"].to_pylist(), strict=True))
    possible = rows.filter(pa.array([head not in theorems for head in _heads(rows)], pa.bool_()))
    return possible, dict(Counter(theorems.values()))


def _heads(rows: pa.Table) -> list[tuple[int, int]]:
    return list(zip(rows["layer"].to_pylist(), rows["head"].to_pylist(), strict=True))


def _keys(rows: pa.Table) -> tuple[NDArray[np.int64], list[str]]:
    """Input (by number), layer, head and window of every row, and the names of inputs."""
    inputs = pc.dictionary_encode(rows["input"].cast(pa.string())).combine_chunks()
    codes = inputs.indices.to_numpy() if rows.num_rows else np.zeros(0)
    columns = [codes, *(rows[name].to_numpy() for name in _HEAD[1:])]
    names = inputs.dictionary.to_pylist() if rows.num_rows else []
    return np.stack([column.astype(np.int64) for column in columns], axis=1), names


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    """Equal names have equal numbers, in order of their first appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _codes(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each row, equal for equal rows and in their order: numbers are sorted much faster than rows."""
    found = np.zeros(len(keys), dtype=np.int64)
    for column in keys.T:
        found = found * (int(column.max(initial=0)) + 1) + column
    return found


def _columns(rows: pa.Table, places: NDArray[np.int64], count: int) -> Numbers:
    """The numbers of one reference, with a column for each repeat; of several windows, the mean."""
    values, repeats = (rows[name].to_numpy(zero_copy_only=False) for name in ("value", "repeat"))
    return np.stack(
        [_means(places, values, repeats == repeat, count) for repeat in range(int(repeats.max(initial=0)) + 1)], axis=1
    )


def _mean(columns: Numbers) -> Numbers:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a row without a number
        mean: Numbers = np.nanmean(columns, axis=1)
    return mean


def _means(places: NDArray[np.int64], values: Numbers, mask: NDArray[np.bool_], count: int) -> Numbers:
    mask = mask & np.isfinite(values)
    counted = values[mask]
    huge = np.abs(counted).max(initial=0.0) > _HUGE
    totals = np.bincount(places[mask], weights=counted * _SHRUNK if huge else counted, minlength=count)
    numbers = np.bincount(places[mask], minlength=count)
    with np.errstate(invalid="ignore"):
        means: Numbers = np.where(numbers > 0, totals / numbers, np.nan)
    return means / _SHRUNK if huge else means
