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
_COLUMNS = ("input", "layer", "head", "window", "reference", "repeat", "value")
#: Codes that are not much more than rows are counted in a table of all of them, which is faster than to sort them.
_DENSE = 4


def head_table(
    evidence: Evidence, model: str, measure: str, theory: str, groups: Mapping[str, str] | None = None
) -> HeadTable:
    """The evidence of one measure as heads x references.

    Inputs that belong together by `groups` have one number in the column of inputs.

    A head that the guard of the theory does not accept cannot decide anything and is left out (see `IDENTIFIABLE`), and
    so is one of which the theory cannot be true (`POSSIBLE`).
    """
    theorems = _theorems(
        evidence.where("layer", "head", "value", "reason", model=model, theory=theory, measure=POSSIBLE)
    )
    guards, rows = (
        _possible(evidence.where(*_COLUMNS, model=model, theory=theory, measure=name, **asked), theorems)
        for name, asked in ((IDENTIFIABLE, {"reference": OBSERVED}), (measure, {}))
    )
    keys, names = _keys(pa.concat_tables([guards, rows]).unify_dictionaries())
    codes = _codes(keys)
    guarded, measured = codes[: guards.num_rows], codes[guards.num_rows :]
    refused = np.unique(guarded[~np.isfinite(guards["value"].to_numpy())])
    accepted = ~np.isin(measured, refused)
    unidentifiable = len(np.unique(measured[~accepted]))
    # Windows of one input and head come to one row.
    row_keys = keys[:3, guards.num_rows :][:, accepted]
    firsts, place_of_row = _distinct(_codes(row_keys))
    places = row_keys[:, firsts]
    repeats = _references(rows, accepted, place_of_row, len(firsts))
    firsts, head_of_place = _distinct(_codes(places[1:]))
    return HeadTable(
        _numbered([(groups or {}).get(name, name) for name in names])[places[0]],
        head_of_place,
        tuple(HeadName(int(layer), int(head)) for layer, head in places[1:, firsts].T),
        {name: _mean(columns) for name, columns in repeats.items()},
        repeats,
        unidentifiable,
        dict(Counter(theorems.values())),
        len(np.unique(_codes(keys[1:3, guards.num_rows :]))) - len(firsts),
    )


def _theorems(marks: pa.Table) -> dict[tuple[int, int], str]:
    """The theorems that exclude heads, by layer and head."""
    excluded = marks.filter(pc.invert(pc.is_valid(marks["value"])))
    heads = zip(excluded["layer"].to_pylist(), excluded["head"].to_pylist(), strict=True)
    return dict(zip(heads, excluded["reason"].to_pylist(), strict=True))


def _possible(rows: pa.Table, theorems: Mapping[tuple[int, int], str]) -> pa.Table:
    """The rows of heads of which the theory can be true."""
    if not theorems:
        return rows
    heads = zip(rows["layer"].to_pylist(), rows["head"].to_pylist(), strict=True)
    return rows.filter(pa.array([head not in theorems for head in heads], pa.bool_()))


def _keys(rows: pa.Table) -> tuple[NDArray[np.int64], list[str]]:
    """Input (by number), layer, head and window of every row, and the names of inputs in order of appearance."""
    inputs = rows["input"].combine_chunks()
    codes = inputs.indices.to_numpy()
    first_row = np.full(len(inputs.dictionary), len(codes))
    first_row[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal codes the last one stays, which is the first row
    order = np.argsort(first_row, kind="stable")[: np.count_nonzero(first_row < len(codes))]
    numbers = np.zeros(len(first_row), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    columns = [numbers[codes], *(rows[name].to_numpy() for name in ("layer", "head", "window"))]
    return np.stack([column.astype(np.int64) for column in columns]), inputs.dictionary.take(order).to_pylist()


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    """Equal names have equal numbers, in order of their first appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _codes(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each row, equal for equal rows and in their order: numbers are sorted much faster than rows."""
    found = np.zeros(keys.shape[1], dtype=np.int64)
    for column in keys:
        found = found * (int(column.max(initial=0)) + 1) + column
    return found


def _distinct(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A row of every code, in their order, and the place of each row's code among them."""
    size = int(codes.max(initial=-1)) + 1
    if size > _DENSE * len(codes):
        _, rows, places = np.unique(codes, return_index=True, return_inverse=True)
        return rows, places
    row_of_code = np.full(size, -1)
    row_of_code[codes] = np.arange(len(codes))
    occurs = row_of_code >= 0
    return row_of_code[occurs], (np.cumsum(occurs) - 1)[codes]


def _references(
    rows: pa.Table, accepted: NDArray[np.bool_], places: NDArray[np.int64], count: int
) -> dict[str, Numbers]:
    """The numbers of every reference, with a column for each repeat; of several windows, the mean.

    A reference that has numbers of other rows only has none here, and says so: it was measured.
    """
    references = rows["reference"].combine_chunks()
    names, every = references.dictionary.to_pylist(), references.indices.to_numpy()
    codes, all_repeats = every[accepted], rows["repeat"].to_numpy()
    values, repeats = rows["value"].to_numpy()[accepted], all_repeats[accepted]
    found = {}
    for code in references.indices.unique().to_pylist():
        mine = codes == code
        own_places, own_values, own_repeats = places[mine], values[mine], repeats[mine]
        last = int(all_repeats[every == code].max())
        columns = [_means(own_places, own_values, own_repeats == repeat, count) for repeat in range(last + 1)]
        found[names[code]] = np.stack(columns, axis=1)
    return found


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
