"""From the rows of one measure to a few numbers, by reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnaudit.records.audit_summary import Statistic
from attnaudit.statistics.huge import deviation, mean, median
from attnaudit.statistics.intervals import bootstrap_intervals

Numbers = NDArray[np.float64]
Codes = NDArray[np.int32]
_NO_REASON = "no reason given"


@dataclass(frozen=True)
class Reduction:
    """The rows of one reference as a statistic that still lacks its interval, and the means for that.

    These are of independent inputs: of one input each, or of a group of inputs that belong together.
    """

    statistic: Statistic
    input_means: Numbers


def reductions(rows: pa.Table, groups: Mapping[str, str]) -> dict[str, Reduction]:
    """What rows with `input`, `reference`, `value` and `reason` come to, by reference in order of appearance.

    `groups` says which inputs belong together, by name.
    """
    references, inputs, reasons = (rows[name].combine_chunks() for name in ("reference", "input", "reason"))
    codes, values = references.indices.to_numpy(), rows["value"].to_numpy()
    input_codes, names = inputs.indices.to_numpy(), _independent(inputs, groups)
    found = {}
    for code in references.indices.unique().to_pylist():
        mine = np.flatnonzero(codes == code)
        finite = np.isfinite(values[mine])
        present, lost = mine[finite], mine[~finite]
        why = Counter(reason or _NO_REASON for reason in reasons.take(pa.array(lost)).to_pylist())
        means = _means(input_codes[present], values[present], names)
        found[references.dictionary[code].as_py()] = Reduction(_statistic(values[present], means, why), means)
    return found


def _statistic(values: Numbers, means: Numbers, rejected: Counter[str]) -> Statistic:
    """All but the interval; independent inputs are the sampling unit of `input_std`."""
    if not len(values):
        return Statistic(None, None, None, None, None, None, 0, dict(rejected))
    return Statistic(
        mean=mean(values),
        median=median(values),
        max=float(values.max()),
        min=float(values.min()),
        interval=None,
        input_std=deviation(means),
        n=len(values),
        rejected=dict(rejected),
    )


def with_intervals(reduced: Sequence[Reduction], seed: int) -> list[Statistic]:
    """The statistics with intervals over independent inputs."""
    intervals = bootstrap_intervals([own.input_means for own in reduced], seed)
    return [replace(own.statistic, interval=found) for own, found in zip(reduced, intervals, strict=True)]


def input_means(rows: pa.Table, groups: Mapping[str, str]) -> Numbers:
    """Mean over all heads of each independent input, in order of its name."""
    inputs = rows["input"].combine_chunks()
    inputs = inputs if pa.types.is_dictionary(inputs.type) else inputs.dictionary_encode()
    return _means(inputs.indices.to_numpy(), rows["value"].to_numpy(), _independent(inputs, groups))


def _independent(inputs: pa.DictionaryArray, groups: Mapping[str, str]) -> NDArray[np.str_]:
    """By the code of an input, its own name or that of its group."""
    return np.array([groups.get(name, name) for name in inputs.dictionary.to_pylist()], dtype=np.str_)


def _means(inputs: Codes, values: Numbers, names: NDArray[np.str_]) -> Numbers:
    """The mean of all values under each name that has any, in order of names."""
    present, places = np.unique(names, return_inverse=True)
    owners = places[inputs]
    counts = np.bincount(owners, minlength=len(present))
    some = np.flatnonzero(counts)
    with np.errstate(over="ignore"):
        means: Numbers = np.bincount(owners, weights=values, minlength=len(present))[some] / counts[some]
    if np.isfinite(means).all():
        return means
    return np.array([mean(values[owners == own]) for own in some])  # a sum was beyond float64
