"""HeadSummaries as a table: one number of one statistic in each row, so that any tool for Parquet can read them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Mapping
from math import nan
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from attnaudit.records.grouped_rows import Group

_NAME = pa.dictionary(pa.int32(), pa.string())
SUMMARY_SCHEMA = pa.schema(
    [
        pa.field("model", _NAME),
        pa.field("theory", _NAME),
        pa.field("measure", _NAME),
        pa.field("statistic", _NAME),  # such as "head_score.mean"
        pa.field("reference", _NAME),  # null where several are compared
        pa.field("layer", pa.int16()),
        pa.field("head", pa.int16()),
        pa.field("place", pa.int32()),  # the number of a bucket, or of a share of noise
        pa.field("value", pa.float64()),  # null for a head without a number
        pa.field("text", _NAME),  # a reason, a theorem, or a name
    ]
)


class Entry(NamedTuple):
    """One row, apart from its group and the name of its statistic."""

    value: float
    reference: str | None = None
    layer: int | None = None
    head: int | None = None
    place: int | None = None
    text: str | None = None


Kind = TypeVar("Kind")


class SummaryRows:
    """The rows of every group by statistic, to be written or read."""

    def __init__(self) -> None:
        self.groups: dict[Group, dict[str, list[Entry]]] = {}

    @staticmethod
    def of_table(table: pa.Table) -> SummaryRows:
        """As they were written."""
        found = SummaryRows()
        columns = {name: table[name].to_pylist() for name in table.column_names}
        columns["value"] = table["value"].fill_null(nan).to_pylist()
        groups = zip(*(columns[name] for name in Group._fields), strict=True)
        entries = zip(*(columns[name] for name in Entry._fields), strict=True)
        for group, statistic, entry in zip(groups, columns["statistic"], entries, strict=True):
            found.add(Group(*group), statistic, Entry(*entry))
        return found

    def table(self) -> pa.Table:
        """All of them."""
        rows = [
            (*group, statistic, *entry)
            for group, own in self.groups.items()
            for statistic, entries in own.items()
            for entry in entries
        ]
        names = (*Group._fields, "statistic", *Entry._fields)
        columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
        return pa.table({name: pa.array(columns[name], from_pandas=True) for name in SUMMARY_SCHEMA.names}).cast(
            SUMMARY_SCHEMA
        )

    def add(self, group: Group, statistic: str, entry: Entry) -> None:
        """One number."""
        self.groups.setdefault(group, {}).setdefault(statistic, []).append(entry)

    def extend(self, group: Group, statistic: str, entries: Iterable[Entry]) -> None:
        """Several; none leave no trace."""
        for entry in entries:
            self.add(group, statistic, entry)

    def add_fields(self, group: Group, name: str, content: Any, **where: Any) -> None:
        """The numbers of a dataclass by the names of its fields, those within it too; None has none."""
        for field in dataclasses.fields(content) if content is not None else ():
            own = getattr(content, field.name)
            if dataclasses.is_dataclass(own):
                self.add_fields(group, f"{name}.{field.name}", own, **where)
            elif own is not None:
                self.add(group, f"{name}.{field.name}", Entry(float(own), **where))

    def of(self, group: Group, statistic: str) -> list[Entry]:
        """All entries of a statistic."""
        return self.groups.get(group, {}).get(statistic, [])

    def count(self, group: Group, statistic: str) -> int:
        """The only value of one that is a number of something; 0 if it was not written."""
        return int(next((own.value for own in self.of(group, statistic)), 0))

    def each(self, group: Group, name: str, kind: type[Kind], *by: str) -> dict[tuple[Any, ...], Kind]:
        """What `add_fields` wrote, by the columns that say where."""
        numbers: dict[tuple[Any, ...], dict[str, float]] = {}
        for path in _paths(kind):
            for entry in self.of(group, f"{name}.{path}"):
                where = tuple(getattr(entry, column) for column in by)
                numbers.setdefault(where, {})[path] = entry.value
        return {where: _built(kind, own) for where, own in numbers.items()}

    def one(self, group: Group, name: str, kind: type[Kind]) -> Kind | None:
        """The same of what there is at most one of."""
        return self.each(group, name, kind).get(())


def _paths(kind: Any, above: str = "") -> Iterator[str]:
    for name, own in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(own):
            yield from _paths(own, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _built(kind: Any, numbers: Mapping[str, float], above: str = "") -> Any:
    def value(name: str, own: Any) -> Any:
        if dataclasses.is_dataclass(own):
            return _built(own, numbers, f"{above}{name}.")
        number = numbers.get(f"{above}{name}")
        return int(number) if own is int and number is not None else number

    return kind(**{name: value(name, own) for name, own in typing.get_type_hints(kind).items()})


def entries(values: Iterable[float], **columns: Iterable[Any]) -> Iterator[Entry]:
    """Entries from columns of equal length."""
    for value, *own in zip(values, *columns.values(), strict=True):
        yield Entry(float(value), **dict(zip(columns, own, strict=True)))
