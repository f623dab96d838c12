"""The difference between two audits, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.audit.difference import Change, ChangedSetting, ChangedVerdict, Difference
from attnaudit.display import shortened
from attnaudit.report.tables import TableColumn, TableRow, terminal_table
from attnaudit.report.verdict_cards import verdict_text

#: With fewer inputs, resampling understates their variance.
_FEW_INPUTS = 10


def difference_report(found: Difference, *, wide: bool = False) -> RenderableType:
    """Different settings, changed verdicts, and every measure, in bold if it changed beyond noise."""
    parts: list[RenderableType] = []
    if found.settings:
        parts.append(_settings(found.settings))
    parts.append(_verdicts(found.verdicts) if found.verdicts else Text("No verdict changed.\n"))
    pairs = dict.fromkeys(change.models for change in found.changes)
    for models in pairs:
        own = [change for change in found.changes if change.models == models]
        parts.append(_changes(models, own, wide=wide))
    clear = sum(change.beyond_noise is True for change in found.changes)
    parts.append(
        Text(
            f"{clear} of {len(found.changes)} measures changed beyond noise: the interval of the difference excludes 0 "
            f"(over inputs, Student's t corrected for skewness, at {found.level:.2%}: all hold jointly with 95 %)."
        )
    )
    fewest = min(change.inputs for change in found.changes)
    if fewest < _FEW_INPUTS:
        parts.append(Text(f"Caution: intervals from {fewest} inputs are too narrow."))
    return Group(*parts)


def _settings(settings: Sequence[ChangedSetting]) -> Table:
    columns = [TableColumn(name) for name in ("setting", "first", "second")]
    cells = [(changed.name, changed.before, changed.after) for changed in settings]
    rows = [TableRow([Text(shortened(cell)) for cell in own]) for own in cells]
    return terminal_table("Settings that differ", columns, rows)


def _verdicts(verdicts: Sequence[ChangedVerdict]) -> Table:
    columns = [TableColumn(name) for name in ("model", "claim", "first", "second")]
    rows = []
    for changed in verdicts:
        words = verdict_text(changed.before), verdict_text(changed.after)
        rows.append(TableRow([Text(shortened(changed.model)), Text(changed.claim), *words]))
    return terminal_table("Verdicts that changed", columns, rows)


def _changes(models: tuple[str, str], changes: Sequence[Change], *, wide: bool) -> Table:
    title = " → ".join(shortened(model, 60) for model in dict.fromkeys(models))
    columns = [
        TableColumn("measure"),
        *(TableColumn(name, number=True, whole=True) for name in ("difference", "interval")),
        *(TableColumn(name, number=True, whole=True, extra=True) for name in ("inputs", "pairs")),
        *(TableColumn(name, number=True, whole=True, extra=True) for name in ("missing", "unpaired")),
        TableColumn("beyond noise"),
    ]
    words = {True: "yes", False: "no", None: "one input"}
    rows = []
    for change in changes:
        name = change.measure if change.theory == "kpca" else f"{change.measure} ({change.theory})"
        cells: list[RenderableType] = [
            Text(shortened(name, 60)),
            "missing" if change.mean is None else f"{change.mean:+.3g}",
            "–" if change.interval is None else f"{change.interval[0]:+.3g} … {change.interval[1]:+.3g}",
            *(f"{count:,}" for count in (change.inputs, change.pairs, change.missing)),
            " + ".join(f"{count:,}" for count in change.unpaired),
            words[change.beyond_noise] if change.pairs else "missing",
        ]
        rows.append(TableRow(cells, "bold" if change.beyond_noise else "dim"))
    return terminal_table(f"Second minus first: {title}", columns, rows, wide=wide)
