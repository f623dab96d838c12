"""Evidence by layer: a small table with a row per layer and a column per measure and score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.schema import IDENTIFIABLE, OBSERVED, POSSIBLE
from attnaudit.records.verdict import Score

#: The values of the columns that name a row, the last of which is the layer.
Key = tuple[Any, ...]
_MARKS = (IDENTIFIABLE, POSSIBLE)


@dataclass(frozen=True)
class LayerMeans:
    """Means of measures over the observed heads of a layer, and how many heads it has."""

    means: Mapping[Key, Mapping[str, float | None]]
    heads: Mapping[Key, int]

    @staticmethod
    def of_rows(rows: pa.Table, by: Sequence[str]) -> LayerMeans:
        """From evidence, by these columns and the layer."""
        names = [*by, "layer"]
        seen = rows.filter(pc.equal(rows["reference"], OBSERVED))
        seen = seen.filter(pc.invert(pc.is_in(pc.cast(seen["measure"], pa.string()), value_set=pa.array(_MARKS))))
        means: dict[Key, dict[str, float | None]] = defaultdict(dict)
        for key, measure, mean in _grouped(seen, [*names, "measure"], ("value", "mean")):
            means[key][measure] = mean
        heads = {(*key, layer): count for key, layer, count in _grouped(seen, names, ("head", "count_distinct"))}
        return LayerMeans(means, heads)

    @staticmethod
    def of_heads(measured: MeasuredHeads) -> LayerMeans:
        """From an audit, by model, theory and layer."""
        means: dict[Key, dict[str, float | None]] = defaultdict(dict)
        heads: dict[Key, set[int]] = defaultdict(set)
        for group in measured.measured():
            if group.measure not in _MARKS:
                found = measured.means(group)
                for layer in np.unique(found.layers).tolist():
                    own, key = found.layers == layer, (group.model, group.theory, layer)
                    mean, counted = np.nan_to_num(found.mean[own]), found.counted[own]
                    means[key][group.measure] = float(np.average(mean, weights=counted)) if counted.any() else None
                    heads[key].update(found.heads[own].tolist())
        return LayerMeans(means, {key: len(own) for key, own in heads.items()})


def layer_table(found: LayerMeans, by: Sequence[str], scores: Mapping[Key, Iterable[Score]]) -> pa.Table:
    """Means of every measure over the observed heads of a layer, and scores, where there are any.

    Args:
        found: the means.
        by: the columns that name a row of the result, besides `layer`, which is the last of them.
        scores: by the values of the columns in `by`.

    Returns:
        A table with the columns in `by`, `layer`, `heads`, the name of every measure, and `NAME score` for each score:
        0 is chance and 1 the theory.
    """
    names = [*by, "layer"]
    means = defaultdict(dict, {key: dict(own) for key, own in found.means.items()})
    for key, own in scores.items():
        for score in own:
            for entry in score.layers:
                means[*key, entry.layer][f"{score.measure} score"] = entry.score.mean
    columns = list(dict.fromkeys(name for own in means.values() for name in own))
    columns.sort(key=lambda name: name.endswith(" score"))
    keys = sorted(means)
    return pa.table(
        {
            **{name: [key[place] for key in keys] for place, name in enumerate(names)},
            "heads": [found.heads.get(key) for key in keys],
            **{name: pa.array([means[key].get(name) for key in keys], pa.float64()) for name in columns},
        }
    )


def _grouped(rows: pa.Table, names: Sequence[str], what: tuple[str, str]) -> Iterable[tuple[Key, Any, Any]]:
    """(All names but the last, the last, the aggregate) of every group."""
    found = rows.group_by(names, use_threads=False).aggregate([what])
    keys = zip(*(found[name].to_pylist() for name in names), strict=True)
    for key, value in zip(keys, found["_".join(what)].to_pylist(), strict=True):
        yield key[:-1], key[-1], value
