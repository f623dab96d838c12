"""The difference between two audits, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.audit.difference import Change, ChangedSetting, ChangedVerdict, Difference
from attnaudit.display import shortened
from attnaudit.report.verdict_cards import verdict_text

#: With fewer inputs, resampling understates their variance.
_FEW_INPUTS = 10


def difference_report(found: Difference) -> RenderableType:
    """Different settings, changed verdicts, and every measure, in bold if it changed beyond noise."""
    parts: list[RenderableType] = []
    if found.settings:
        parts.append(_settings(found.settings))
    parts.append(_verdicts(found.verdicts) if found.verdicts else Text("No verdict changed.\n"))
    pairs = dict.fromkeys(change.models for change in found.changes)
    parts += [_changes(models, [change for change in found.changes if change.models == models]) for models in pairs]
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
    table = Table(title="Settings that differ", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("setting", "first", "second"):
        table.add_column(name, overflow="fold")
    for changed in settings:
        table.add_row(*(Text(shortened(cell)) for cell in (changed.name, changed.before, changed.after)))
    return table


def _verdicts(verdicts: Sequence[ChangedVerdict]) -> Table:
    table = Table(title="Verdicts that changed", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("model", "claim", "first", "second"):
        table.add_column(name, overflow="fold")
    for changed in verdicts:
        words = verdict_text(changed.before), verdict_text(changed.after)
        table.add_row(Text(shortened(changed.model)), Text(changed.claim), *words)
    return table


def _changes(models: tuple[str, str], changes: Sequence[Change]) -> Table:
    title = " → ".join(shortened(model, 60) for model in dict.fromkeys(models))
    table = Table(title=Text(f"Second minus first: {title}"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    for name in ("difference", "interval", "inputs", "pairs", "missing", "unpaired"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("beyond noise")
    words = {True: "yes", False: "no", None: "one input"}
    for change in changes:
        name = change.measure if change.theory == "kpca" else f"{change.measure} ({change.theory})"
        interval = "–" if change.interval is None else f"{change.interval[0]:+.3g} … {change.interval[1]:+.3g}"
        table.add_row(
            Text(shortened(name, 60)),
            "missing" if change.mean is None else f"{change.mean:+.3g}",
            interval,
            f"{change.inputs:,}",
            f"{change.pairs:,}",
            f"{change.missing:,}",
            " + ".join(f"{count:,}" for count in change.unpaired),
            words[change.beyond_noise] if change.pairs else "missing",
            style="bold" if change.beyond_noise else "dim",
        )
    return table
