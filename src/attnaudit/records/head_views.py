"""What a person sees of single heads: attention on a few inputs, eigenvalues, and values beside the predicted ones.

It is kept on request, in a folder inside that of the run, so that the evidence is the same with it and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from attnaudit.records.quantised import QUANTISED, QuantisedRows
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind

#: The folder inside that of an audit.
FOLDER = "heads"
#: Raised when a view has other content, so that older parts are not taken for newer ones.
VERSION = 1


@dataclass(frozen=True)
class HeadView:
    """One head on one input.

    `attention` has one or two rows over the keys: the mean over all queries that see a key, and the row of
    `one_query`, if there is one. `block` is the attention of the first tokens among themselves, a row per query. The
    last `grid` tokens are laid out as (height, width). In layers with several `windows` it is the first of them; where
    `query_heads` share their keys, they are taken together, and `block` is that of the first.

    `eigenvalues` are those of the keys' kernel, largest first, and `bound` what none of them can exceed. `cosines` are
    those of value columns and predicted columns in the best assignment, and `columns` the best pairs of them, each as
    a row of values and one of predicted values; where there are none, `problem` says why.
    """

    layer: int
    head: int
    tokens: int
    windows: int
    query_heads: int
    causal: bool
    grid: tuple[int, int] | None
    attention: QuantisedRows
    one_query: int | None
    block: QuantisedRows | None
    eigenvalues: tuple[float, ...]
    bound: float | None
    cosines: tuple[float, ...]
    columns: QuantisedRows | None
    problem: str


@dataclass(frozen=True)
class InputView:
    """One input with all heads of a model: a `picture` of it (JPEG), or its `tokens` as text, if either is known.

    `note` says what is missing, and why.
    """

    model: str
    input: str
    picture: bytes | None
    tokens: tuple[str, ...] | None
    note: str
    heads: tuple[HeadView, ...]


_HEAD = pa.struct(
    [
        pa.field("layer", pa.int16()),
        pa.field("head", pa.int16()),
        pa.field("tokens", pa.int32()),
        pa.field("windows", pa.int32()),
        pa.field("query_heads", pa.int16()),
        pa.field("causal", pa.bool_()),
        pa.field("grid", pa.list_(pa.int32())),
        pa.field("attention", QUANTISED),
        pa.field("one_query", pa.int32()),
        pa.field("block", QUANTISED),
        pa.field("eigenvalues", pa.list_(pa.float32())),
        pa.field("bound", pa.float32()),
        pa.field("cosines", pa.list_(pa.float32())),
        pa.field("columns", QUANTISED),
        pa.field("problem", pa.string()),
    ]
)
#: A row per input.
SCHEMA = pa.schema(
    [
        pa.field("model", pa.string()),
        pa.field("input", pa.string()),
        pa.field("picture", pa.binary()),
        pa.field("tokens", pa.list_(pa.string())),
        pa.field("note", pa.string()),
        pa.field("heads", pa.list_(_HEAD)),
    ]
)


@dataclass(frozen=True)
class ViewsIdentity:
    """The audit that the views belong to, as a hash of its identity."""

    audit: str
    version: int = VERSION
    kind: Literal[RunKind.HEAD_VIEWS] = RunKind.HEAD_VIEWS


@dataclass(frozen=True)
class ViewsFile:
    """The `run.json` of head views; `inputs` is how many each part has."""

    format: int
    identity: ViewsIdentity
    attnaudit: str
    versions: dict[str, str]
    parts: tuple[str, ...]
    inputs: dict[str, int]


def table_of(views: Sequence[InputView]) -> pa.Table:
    """The rows of a part."""
    return pa.Table.from_pylist([_plain(view) for view in views], schema=SCHEMA)


def read_views(run: Path) -> list[InputView]:
    """The views of a run, those of a first command that was stopped too; none if they were not asked for.

    Raises:
        RunFolderError: a part is damaged.
    """
    folder = RunFolder(run / FOLDER)
    if not folder.settings_file.exists():
        return []
    settings, finished = folder.settings(ViewsFile, RunKind.HEAD_VIEWS), folder.parts.files()
    tables = folder.parts.tables({key: settings.inputs[key] for key in settings.parts if key in finished}, SCHEMA)
    return [_input_view(row) for table in tables.values() for row in table.to_pylist()]


def _plain(view: Any) -> Any:
    if isinstance(view, QuantisedRows):
        return view.plain()
    if isinstance(view, (HeadView, InputView)):
        return {field.name: _plain(getattr(view, field.name)) for field in fields(view)}
    return [_plain(entry) for entry in view] if isinstance(view, tuple) else view


def _input_view(row: dict[str, Any]) -> InputView:
    tokens = None if row["tokens"] is None else tuple(row["tokens"])
    return InputView(**{**row, "tokens": tokens, "heads": tuple(map(_head_view, row["heads"]))})


def _head_view(row: dict[str, Any]) -> HeadView:
    kept = {name: row[name] and QuantisedRows.from_plain(row[name]) for name in ("attention", "block", "columns")}
    listed = {name: tuple(row[name]) for name in ("eigenvalues", "cosines")}
    return HeadView(**{**row, **kept, **listed, "grid": row["grid"] and tuple(row["grid"])})
