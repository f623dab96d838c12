"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from attnaudit.papers.forensics import FACTOR, STATISTICS, Convention, EigenvalueMatch
from attnaudit.papers.published_tables import TEO_NGUYEN_EIGENVALUES
from attnaudit.papers.results import Forensics, RepeatedFigure, RepeatedTable
from attnaudit.papers.tables import TABLES, Comparison, Table
from attnaudit.records.audit_summary import Statistics
from attnaudit.report.tables import TableColumn, TableRow, terminal_table


def repetition_report(
    result: RepeatedTable | RepeatedFigure | Forensics, *, wide: bool = False
) -> RenderableType | None:
    """A table with the published numbers, or the conventions that come closest; None for a figure."""
    if isinstance(result, RepeatedTable):
        tests = [
            Text(f"{label}: {passed:,} of {count:,} allclose tests pass")
            for label, (passed, count) in result.allclose.items()
        ]
        return Group(comparison_table(TABLES[result.name], result.comparisons, wide=wide), *tests)
    if isinstance(result, Forensics):
        found = result.findings.items()
        return Group(*(forensics_table(label, findings) for label, findings in found))
    return None


def comparison_table(table: Table, comparisons: Sequence[Comparison], *, wide: bool = False) -> RichTable:
    """Published number, ours and their difference, one line per model and quantity."""
    columns = [
        TableColumn("model"),
        TableColumn("quantity", whole=True),
        *(TableColumn(name, number=True, whole=True) for name in ("published", "ours", "difference")),
        TableColumn("relative", number=True, extra=True),
        TableColumn("values", number=True, extra=True),
        TableColumn("rejected", number=True),
    ]
    rows, previous = [], None
    for entry in comparisons:
        model = "" if entry.model == previous else entry.model
        previous = entry.model
        cells: list[RenderableType] = [
            Text(model),
            entry.column,
            _plus_minus(*(entry.published or (None,)), decimals=entry.decimals),
            _plus_minus(entry.ours, entry.ours_std, decimals=entry.decimals + 1),
            "–" if entry.difference is None else f"{entry.difference:+.{entry.decimals + 1}f}",
            _relative(entry),
            f"{entry.heads:,}",
            f"{entry.rejected:,}",
        ]
        rows.append(TableRow(cells))
    return terminal_table(table.caption, columns, rows, wide=wide)


def statistics_table(model: str, observed: Statistics, *, wide: bool = False) -> RichTable:
    """Every measure of a model: mean with its interval over inputs, range, and counts of values.

    There is a value for every head and input.
    """
    columns = [
        TableColumn("measure", whole=True),
        *(TableColumn(name, number=True, whole=True) for name in ("mean", "95 % interval")),
        TableColumn("median", number=True, whole=True, extra=True),
        *(TableColumn(name, number=True, whole=True, extra=True) for name in ("min", "max", "values")),
        TableColumn("missing", number=True, whole=True),
    ]
    rows = [
        TableRow(
            [
                measure,
                _number(s.mean),
                "–" if s.interval is None else f"{_number(s.interval[0])} … {_number(s.interval[1])}",
                *(_number(value) for value in (s.median, s.min, s.max)),
                f"{s.n:,}",
                f"{s.lost:,}",
            ]
        )
        for measure, s in observed.items()
    ]
    return terminal_table(model, columns, rows, wide=wide)


def forensics_table(model: str, findings: Sequence[EigenvalueMatch], shown: int = 8) -> RichTable:
    """The conventions whose eigenvalues are closest to those of Teo & Nguyen."""
    fitting = sum(finding.fits for finding in findings)
    title = f"{model}: {fitting} of {len(findings)} conventions are within a factor of {FACTOR:g} of all four numbers"
    columns = [
        TableColumn("convention"),
        *(TableColumn(name, number=True, whole=True) for name in STATISTICS),
        TableColumn("worst factor", number=True),
    ]
    rows = [TableRow(["published", *(f"{v:g}" for v in TEO_NGUYEN_EIGENVALUES.values()), ""], "bold")]
    for finding in findings[:shown]:
        numbers = [_number(getattr(finding, name)) for name in (*STATISTICS, "worst_factor")]
        rows.append(TableRow([_convention_words(finding.convention), *numbers]))
    return terminal_table(title, columns, rows)


def _convention_words(convention: Convention) -> str:
    """Of which pairs the kernel is, and what is done to it."""
    c = convention
    done = {"over g g'": c.normalised, "centred": c.centred, "√d": c.temperature, "over N": c.over_n}
    standardised = [] if c.standardised == "none" else [f"standardised {c.standardised}"]
    return ", ".join([c.pairs, *(words for words, applies in done.items() if applies), *standardised])


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.3g}"


def _plus_minus(mean: float | None = None, std: float | None = None, *, decimals: int) -> str:
    if mean is None:
        return "–"
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")


def _relative(entry: Comparison) -> str:
    if entry.difference is None or entry.published is None or not entry.published[0]:
        return "–"
    return f"{entry.difference / entry.published[0]:+.1%}"
