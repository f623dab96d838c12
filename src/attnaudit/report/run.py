"""What `attnaudit.audit` returns: an audit with its verdicts that can be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.display import html_table
from attnaudit.records.evidence import Evidence
from attnaudit.records.finished import open_run
from attnaudit.records.verdict import Rank, Verdict
from attnaudit.report.page import FILE, write_page


@dataclass(frozen=True)
class Run:
    """A finished audit: `print(run)` shows the verdicts, `run.evidence` is a pyarrow table of all rows.

    `level` is the confidence of every interval, widened so that all of them hold together with 95 %. `ranking` compares
    the theories where there are several. `run.report()` writes the page to look at.
    """

    path: Path
    rows: Evidence
    summary: dict[str, Any]
    verdicts: tuple[Verdict, ...]
    ranking: tuple[Rank, ...]
    level: float

    @cached_property
    def evidence(self) -> pa.Table:
        """All rows; read from the run folder when first asked for, while `rows` answers questions without that."""
        return self.rows.table()

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page of this run, `report.html` in its folder if no other path is given, and say where it is."""
        return write_page([open_run(self.path)], self.path / FILE if path is None else Path(path))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({len(self.rows):,} rows of evidence in {self.path})"]
        for model in self.summary["models"]:
            lines.append(f"  {model}")
            lines += [f"    {v.claim:<20}{v.word.value:<20}{v.reason}" for v in self.verdicts if v.model == model]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        several = len(self.summary["models"]) > 1
        return html_table(
            f"{', '.join(self.summary['models'])}: {len(self.rows):,} rows of evidence",
            [
                (verdict.claim, *((verdict.model,) if several else ()), verdict.word.value, verdict.reason)
                for verdict in self.verdicts
            ],
        )
