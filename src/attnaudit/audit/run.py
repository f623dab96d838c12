"""An audit up to its numbers: every unit of a plan computed, read back and summarised."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.summary import summarise
from attnaudit.errors import InputError
from attnaudit.records.audit import AuditFile, AuditRun
from attnaudit.records.engine import Progress, Resources, execute
from attnaudit.records.run_folder import RunFolder, RunKind


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
    folder = execute(plan, out, resources, progress)
    keys = list(dict.fromkeys(unit.key for unit in plan.units))
    rows, notes = folder.evidence_with_notes(keys)
    if not len(rows):
        skipped = [pair for note in notes for pair in note.skipped]
        first = f"; the first: {skipped[0][0]} {skipped[0][1]}" if skipped else ""
        raise InputError(f"None of the {len(skipped)} inputs could be used{first}.")
    certificates: dict[str, float] = {}
    solved: Counter[str] = Counter()
    for note in notes:
        solved.update(note.solvers)
        for layer, error in note.certificate.items():
            certificates[layer] = max(error, certificates.get(layer, 0.0))
    attention = {layer: kind for note in notes for layer, kind in note.attention.items()}
    folder.extend_settings(certificates=certificates, eigen_solvers=dict(solved), attention=attention)
    summary = summarise(rows, notes, plan.selection)
    return AuditRun(folder.path, folder.settings(AuditFile, RunKind.AUDIT), summary, rows)
