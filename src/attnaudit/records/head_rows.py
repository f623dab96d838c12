"""What the rows of an audit say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.records.evidence import Evidence
from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_table import head_table
from attnaudit.records.head_values import HeadTable
from attnaudit.records.measured_heads import Distribution, Distributions, HeadMeans, LayerQuartiles
from attnaudit.records.schema import OBSERVED
from attnaudit.records.scored_heads import ScoredHeads
from attnaudit.records.sketch import OrderedValues


@dataclass(frozen=True)
class HeadRows:
    """Computes every answer when it is asked for; `groups` says which inputs belong together, by name."""

    rows: Evidence
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """How many rows there are."""
        return f"{len(self.rows):,} rows of evidence"

    def measured(self) -> Sequence[Group]:
        """Every model, theory and measure that has rows."""
        return [Group(*names) for names in self.rows.combinations(*Group._fields)]

    def scored(self, group: Group, scored: Callable[[HeadTable], ScoredHeads]) -> ScoredHeads:
        """The scores of the rows, with inputs that belong together as one."""
        return scored(head_table(self.rows, group.model, group.measure, group.theory, self.groups))

    def means(self, group: Group, reference: str = OBSERVED) -> HeadMeans:
        """Every head that has rows; windows count as inputs."""
        rows = self._values(group, reference, "input", "layer", "head")
        found = rows.group_by(["layer", "head"], use_threads=False).aggregate(
            [
                ("value", "mean"),
                ("value", "stddev", pc.VarianceOptions(ddof=1)),
                ("value", "count"),
                ("value", "count", pc.CountOptions(mode="only_null")),
            ]
        )
        layers, heads, counted, missing = (found.column(place).to_numpy().astype(np.int64) for place in (0, 1, 4, 5))
        mean, deviation = (pc.fill_null(found.column(place), np.nan).to_numpy() for place in (2, 3))
        return HeadMeans(len(rows["input"].unique()), layers, heads, mean, deviation, counted, missing)

    def layer_quartiles(self, group: Group) -> LayerQuartiles:
        """Every layer that has a number."""
        rows = self._values(group, OBSERVED, "layer").drop_null()
        layers, values = rows["layer"].to_numpy(), rows["value"].to_numpy()
        numbers = sorted(set(layers.tolist()))
        own = [values[layers == layer] for layer in numbers]
        quartiles = [np.quantile(value, (0.25, 0.5, 0.75)) for value in own]
        lower, middle, upper = ([float(three[place]) for three in quartiles] for place in range(3))
        return LayerQuartiles(numbers, [float(value.mean()) for value in own], lower, middle, upper)

    def distributions(self, group: Group) -> Distributions:
        """All values of heads that can decide, windows of an input averaged."""
        table = head_table(self.rows, group.model, group.measure, group.theory)
        found = {name: _distribution(name, table) for name in (table.references if len(table) else ())}
        return Distributions(len(np.unique(table.heads)), table.unidentifiable, found)

    def _values(self, group: Group, reference: str, *columns: str) -> pa.Table:
        """The rows of a reference, with null for every value that is not finite."""
        rows = self.rows.where(*columns, "value", **group._asdict(), reference=reference)
        finite = pc.if_else(pc.is_finite(rows["value"]), rows["value"], pa.scalar(None, pa.float64()))
        return rows.set_column(len(columns), "value", finite)


def _distribution(reference: str, table: HeadTable) -> Distribution:
    values, inputs = table.references[reference], table.inputs_of(reference)
    finite = np.sort(values[np.isfinite(values)])
    expected = int(np.isin(table.inputs, inputs).sum()) or len(values)
    mean = float(finite.mean()) if len(finite) else None
    return Distribution(len(finite), expected - len(finite), len(inputs), mean, OrderedValues(finite))
