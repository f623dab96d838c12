"""An audit up to its numbers: every unit of a plan computed, read back and summarised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnaudit.audit.folding import Folding, kept_statistics
from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.summary import statistics, summarise
from attnaudit.errors import InputError, RunFolderError
from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_file import AuditFile
from attnaudit.records.engine import Progress, Resources, execute
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.keep import Keep
from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind


def measure(
    plan: AuditPlan,
    out: Path | RunFolder,
    *,
    resources: Resources | None = None,
    progress: Progress = lambda done, total, label: None,
) -> AuditRun:
    """Compute what is missing of an audit, and summarise all of it.

    The summary has no verdicts yet, and is not written: that is for whoever judges.

    Args:
        plan: models, inputs and settings.
        out: the run folder, which may be locked already, so that nobody writes before the claims are judged.
        resources: where to compute; by default in this process, as always with models that were given in memory.
        progress: told of every finished unit.
    """
    resources = resources or Resources()
    if plan.settings.device != "cpu" and resources.cluster is None:
        resources = replace(resources, workers=1)  # several processes would only share one GPU
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    _check_kept(folder, plan.keep)
    is_new = not folder.settings_file.exists()
    folding = Folding(plan) if plan.keep is Keep.SUMMARIES else None
    execute(plan, folder, resources, progress, folding)
    heads: MeasuredHeads
    if folding is None:
        rows, notes = folder.parts.evidence_with_notes(list(dict.fromkeys(unit.key for unit in plan.units)))
        heads, found = HeadRows(rows, plan.groups), statistics(rows, plan.selection, plan.groups)
    else:
        kept, notes = folder.parts.summaries_with_notes(list(plan.summary_parts))
        heads, found = kept, list(kept_statistics(kept.rows))
    together = Notes.merged(notes)
    if not found:
        if is_new:  # with other inputs it would be another run, which this one must not keep out
            folder.discard()
        first, skipped = " ".join(next(iter(together.skipped), ())), len(together.skipped)
        if skipped == 1:
            raise InputError(f"The only input could not be used: {first}.")
        raise InputError(f"None of the {skipped:,} inputs could be used{f'; the first: {first}' if first else ''}.")
    folder.extend_settings(
        certificates=together.certificate, eigen_solvers=together.solvers, attention=together.attention
    )
    summary = summarise(found, together, plan.selection)
    return AuditRun(folder.path, folder.settings(AuditFile, RunKind.AUDIT), summary, heads)


def _check_kept(folder: RunFolder, keep: Keep) -> None:
    """Rows can be summarised later, but not the other way round."""
    if keep is Keep.ROWS and folder.settings_file.exists() and folder.header().get("keep") == Keep.SUMMARIES:
        raise RunFolderError(
            f"{folder.path} kept summaries and no rows: repeat the command with --keep summaries, or give --out "
            "another folder."
        )
