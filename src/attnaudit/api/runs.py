"""A finished audit, however it was come by: computed now, or opened from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.records.audit import AuditRun, open_audit
from attnaudit.records.frames import data_frame
from attnaudit.records.layer_table import LayerMeans, layer_table
from attnaudit.records.verdict import Score
from attnaudit.report.answers import answers
from attnaudit.report.notebook import notebook_view
from attnaudit.report.page import FILE, write_page


@dataclass(frozen=True, repr=False)
class Run(AuditRun):
    """A finished audit: `print(run)` shows the answer and the verdicts, `run.evidence` is a table of all rows, if kept.

    `run.summary` has the statistics, `run.layers()` a row per layer, `run.ranking` compares the theories where there
    are several, and `run.report()` writes a page to look at.
    """

    def frame(self) -> Any:
        """All rows as a data frame of pandas or polars, whichever is installed.

        Raises:
            MissingExtraError: neither is.
        """
        return data_frame(self.evidence)

    def layers(self) -> pa.Table:
        """A row per model, theory and layer: the mean of every measure over heads, and the scores of its claims."""
        scores: dict[tuple[str, str], dict[str, Score]] = {}
        for verdict in self.verdicts:
            own = scores.setdefault((verdict.model, self.summary.claims[verdict.claim].theory), {})
            own.update((score.measure, score) for score in verdict.scores)
        means = LayerMeans.of_heads(self.heads)
        return layer_table(means, ("model", "theory"), {key: own.values() for key, own in scores.items()})

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page of this run, by default `report.html` in its folder, and return its path."""
        return write_page([self], self.path / FILE if path is None else Path(path))

    def __str__(self) -> str:
        return "\n".join([*answers(self).values(), repr(self)])

    def _repr_html_(self) -> str:
        return notebook_view(self)


def open(path: str | Path) -> Run:
    """Open the folder of a finished audit.

    Raises:
        RunFolderError: it is not one, the audit is not finished, or a part of it is missing or damaged.
    """
    found = open_audit(Path(path))
    return Run(found.path, found.settings, found.summary, found.heads)
