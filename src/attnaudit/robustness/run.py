"""An evaluation from start to finish: compute what is missing, read all of it, and summarise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from attnaudit.records.engine import Progress, execute
from attnaudit.records.evaluation import Condition, EvaluationSummary
from attnaudit.records.run_folder import RunFolder
from attnaudit.robustness.plan import EvaluationPlan
from attnaudit.robustness.summary import summarise
from attnaudit.robustness.table import Results


@dataclass(frozen=True)
class Robustness:
    """A finished evaluation: its folder, its rows, and what they amount to."""

    path: Path
    results: Results = field(repr=False)
    summary: EvaluationSummary


def evaluate(
    plan: EvaluationPlan,
    out: Path,
    *,
    baseline: str | None = None,
    progress: Progress = lambda done, total, label: None,
) -> Robustness:
    """Evaluate the models of a plan in a run folder. Repeated, it computes what is missing and nothing else.

    Args:
        plan: models, images, conditions.
        out: the run folder: `run.json`, `evidence/part-*.parquet`, `summary.json`.
        baseline: label of the model whose errors divide those of the others in the mean corruption error.
        progress: told of every finished batch.
    """
    folder = RunFolder(out)
    with folder.locked():
        execute(plan, folder, progress=progress)
        results = _read(folder, plan)
        summary = summarise(results, plan, baseline)
        folder.write_summary(summary)
    return Robustness(out, results, summary)


def _read(folder: RunFolder, plan: EvaluationPlan) -> Results:
    tables = folder.parts.tables({unit.key: unit.images for unit in plan.units}, plan.schema)
    parts: dict[tuple[str, Condition], list[pa.Table]] = {}
    for unit in plan.units:
        parts.setdefault((unit.subject.model.label, unit.condition), []).append(tables[unit.key])
    return Results({of: pa.concat_tables(tables) for of, tables in parts.items()})
