"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from attnaudit.papers.forensics import FACTOR, STATISTICS, EigenvalueMatch
from attnaudit.papers.published_tables import TEO_NGUYEN_EIGENVALUES
from attnaudit.papers.results import Forensics, RepeatedFigure, RepeatedTable
from attnaudit.papers.tables import TABLES, Comparison, Table
from attnaudit.records.audit import Statistics


def repetition_report(result: RepeatedTable | RepeatedFigure | Forensics) -> RenderableType | None:
    """A table with the published numbers, or the conventions that come closest; None for a figure."""
    if isinstance(result, RepeatedTable):
        tests = [
            Text(f"{label}: {passed:,} of {count:,} allclose tests pass")
            for label, (passed, count) in result.allclose.items()
        ]
        return Group(comparison_table(TABLES[result.name], result.comparisons), *tests)
    if isinstance(result, Forensics):
        return Group(*(forensics_table(label, findings) for label, findings in result.findings.items()))
    return None


def comparison_table(table: Table, comparisons: Sequence[Comparison]) -> RichTable:
    """Published number, ours and their difference, one line per model and quantity."""
    shown = RichTable(title=Text(table.caption), title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("model", overflow="fold")
    for name in ("quantity", "published", "ours", "difference", "heads", "rejected"):
        shown.add_column(name, justify="left" if name == "quantity" else "right", no_wrap=True)
    previous = None
    for entry in comparisons:
        model = "" if entry.model == previous else entry.model
        previous = entry.model
        shown.add_row(
            Text(model),
            entry.column,
            _plus_minus(*(entry.published or (None,)), decimals=entry.decimals),
            _plus_minus(entry.ours, entry.ours_std, decimals=entry.decimals + 1),
            _difference(entry),
            f"{entry.heads:,}",
            f"{entry.rejected:,}",
        )
    return shown


def statistics_table(model: str, observed: Statistics) -> RichTable:
    """Every measure of a model: mean with its interval over inputs, range, and counts."""
    shown = RichTable(title=Text(model), title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("measure", no_wrap=True)
    for name in ("mean", "95 % interval", "median", "min", "max", "heads", "rejected"):
        shown.add_column(name, justify="right", no_wrap=True)
    for measure, s in observed.items():
        interval = s.interval
        shown.add_row(
            measure,
            _number(s.mean),
            "–" if interval is None else f"{_number(interval[0])} … {_number(interval[1])}",
            *(_number(value) for value in (s.median, s.min, s.max)),
            f"{s.n:,}",
            f"{s.lost:,}",
        )
    return shown


def forensics_table(model: str, findings: Sequence[EigenvalueMatch], shown: int = 8) -> RichTable:
    """The conventions whose eigenvalues are closest to those of Teo & Nguyen."""
    fitting = sum(finding.fits for finding in findings)
    title = f"{model}: {fitting} of {len(findings)} conventions are within a factor of {FACTOR:g} of all four numbers"
    table = RichTable(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("kernel of", "over g g'", "centred", "√d", "standardised", "over N"):
        table.add_column(name)
    for name in (*STATISTICS, "worst factor"):
        table.add_column(name, justify="right")
    table.add_row(*["published"] + [""] * 5, *(f"{v:g}" for v in TEO_NGUYEN_EIGENVALUES.values()), "", style="bold")
    for finding in findings[:shown]:
        c = finding.convention
        flags = ["yes" if flag else "no" for flag in (c.normalised, c.centred, c.temperature)]
        numbers = [_number(getattr(finding, name)) for name in (*STATISTICS, "worst_factor")]
        table.add_row(c.pairs, *flags, c.standardised, "yes" if c.over_n else "no", *numbers)
    return table


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.3g}"


def _plus_minus(mean: float | None = None, std: float | None = None, *, decimals: int) -> str:
    if mean is None:
        return "–"
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")


def _difference(entry: Comparison) -> str:
    if entry.difference is None or entry.published is None:
        return "–"
    share = f" ({entry.difference / entry.published[0]:+.1%})" if entry.published[0] else ""
    return f"{entry.difference:+.{entry.decimals + 1}f}{share}"
