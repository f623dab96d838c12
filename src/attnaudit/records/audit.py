"""An audit as its folder has it: settings, statistics, verdicts and rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records.audit_file import AuditFile
from attnaudit.records.audit_summary import AuditSummary, Statistic, Statistics
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.keep import Keep
from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.verdict import BestTheory, Rank, Verdict


@dataclass(frozen=True)
class AuditRun:
    """A finished audit: `print(run)` shows the verdicts, `run.evidence` is a pyarrow table of all rows."""

    path: Path
    settings: AuditFile
    summary: AuditSummary
    heads: MeasuredHeads

    @property
    def rows(self) -> Evidence:
        """The rows, to be asked for some of them.

        Raises:
            RunFolderError: the run kept summaries only.
        """
        if not isinstance(self.heads, HeadRows):
            raise RunFolderError(
                f"{self.path} kept summaries and no rows, which this needs: repeat its command with --keep rows and "
                "--out another folder."
            )
        return self.heads.rows

    @cached_property
    def evidence(self) -> pa.Table:
        """All rows; read from the run folder when first asked for, while `rows` heads questions without that."""
        return self.rows.table()

    @property
    def name(self) -> str:
        """The name of the folder, without the path to it."""
        return self.path.resolve().name

    @property
    def models(self) -> list[str]:
        """The models that were audited, in order."""
        return list(self.summary.models)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the evidence says of every claim, for every model."""
        return self.summary.verdicts

    @property
    def levels(self) -> dict[str, float]:
        """The confidence level of the intervals behind verdicts, by claim."""
        return dict(self.summary.levels)

    @property
    def ranking(self) -> tuple[Rank, ...]:
        """Theories compared, where there are several."""
        return self.summary.ranking

    @property
    def best_theories(self) -> tuple[BestTheory, ...]:
        """The theory that is closest to each head, where theories are compared and any is above chance."""
        return self.summary.best_theories

    @property
    def protocol(self) -> Protocol:
        """`exact` or `paper`."""
        return self.settings.identity.settings.protocol

    @property
    def seed(self) -> int:
        """Of every random choice."""
        return self.settings.identity.settings.seed

    @property
    def groups(self) -> dict[str, str]:
        """What inputs belong to, by name, where they are not independent."""
        return dict(self.settings.identity.groups)

    def statistic(self, model: str, measure: str, theory: str) -> Statistic:
        """One measure on the observed heads of a model, for one theory.

        Raises:
            RunFolderError: the summary does not have it.
        """
        first = self.settings.identity.settings.theories[:1]
        found = (
            self.summary.observed(model)
            if theory in first
            else self.summary.other_theories.get(model, {}).get(theory, {})
        )
        if measure not in found:
            raise RunFolderError(
                f"{RunFolder(self.path).summary_file} has no statistic of {measure} for {model} and the theory "
                f"{theory}, although there are rows of it: restore the file as it was, or repeat the command."
            )
        return found[measure]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({self.heads.words} in {self.path})"]
        for model in self.models:
            lines.append(f"  {model}")
            lines += [f"    {v.claim:<18}  {v.words:<26}  {v.reason}" for v in self.verdicts if v.model == model]
        return "\n".join(lines)


@dataclass(frozen=True)
class AuditedModel:
    """One model of an audit, on which claims about models are judged.

    `heads` know every head and reference, `observed` has the statistics of each measure.
    """

    model: str
    heads: MeasuredHeads
    observed: Statistics
    protocol: Protocol
    seed: int = 0


def open_audit(path: Path) -> AuditRun:
    """Open the folder of a finished audit.

    Raises:
        RunFolderError: it is not one, the audit is not finished, or a part of it is missing or damaged.
    """
    folder = RunFolder(path)
    settings = folder.settings(AuditFile, RunKind.AUDIT)
    summary = folder.summary(AuditSummary, "the summary of an audit")
    if settings.keep is Keep.SUMMARIES:
        return AuditRun(path, settings, summary, folder.parts.summaries_with_notes(settings.parts)[0])
    rows = folder.parts.evidence(settings.parts)
    return AuditRun(path, settings, summary, HeadRows(rows, dict(settings.identity.groups)))
