"""What `attnaudit.audit` returns: an audit with its verdicts that can be looked at."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from attnaudit.display import html_table
from attnaudit.records.audit import AuditRun
from attnaudit.report.page import FILE, write_page


@dataclass(frozen=True, repr=False)
class Run(AuditRun):
    """A finished audit: `print(run)` shows the verdicts, `run.evidence` is a pyarrow table of all rows.

    `run.ranking` compares the theories where there are several. `run.report()` writes the page to look at.
    """

    @classmethod
    def of(cls, audit: AuditRun) -> Run:
        """The same audit, with a page to write."""
        return cls(**{field.name: getattr(audit, field.name) for field in fields(audit)})

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page of this run, `report.html` in its folder if no other path is given, and say where it is."""
        return write_page([self], self.path / FILE if path is None else Path(path))

    def _repr_html_(self) -> str:
        several = len(self.models) > 1
        return html_table(
            f"{', '.join(self.models)}: {len(self.rows):,} rows of evidence",
            [
                (verdict.claim, *((verdict.model,) if several else ()), verdict.word.value, verdict.reason)
                for verdict in self.verdicts
            ],
        )
