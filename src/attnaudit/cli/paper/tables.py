"""Tables 1 to 4: an audit under the study's protocol, with the published row beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import data_console, print_json, say

if TYPE_CHECKING:
    from attnaudit.records.engine import Resources
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.selection import InputSelection


def repeat_table(
    name: str,
    specs: Sequence[ModelSpec],
    choice: InputSelection,
    device: str,
    resources: Resources,
    out: Path | None,
    json: bool,
) -> None:
    """Audit the models, print the comparison, and write it as CSV to the run folder."""
    from attnaudit.audit import plan_audit
    from attnaudit.cli import work
    from attnaudit.papers.tables import TABLES, compare_models, table_settings
    from attnaudit.protocol import Protocol
    from attnaudit.report.data_files import write_csv
    from attnaudit.report.terminal import comparison_table
    from attnaudit.sources.selection import select_inputs

    table = TABLES[name]
    selected = select_inputs(specs, choice, Protocol.PAPER, device)
    plan = plan_audit(specs, selected.shards, table_settings(table, seed=choice.seed, device=device))
    run = work.measure_with_progress(plan, out, resources, f"{name}, {selected.words}")
    work.report_losses(run)
    run.folder.write_summary(run.summary)  # a table of the study has no verdicts
    comparisons = compare_models(table, run.summary["models"])
    write_csv(comparisons, run.path / f"{name}.csv")
    if json:
        print_json([asdict(entry) for entry in comparisons])
    else:
        data_console().print(comparison_table(table, comparisons))
        for label, references in run.summary["models"].items():
            if (close := references["observed"].get("allclose")) is not None:
                passed = round((close["mean"] or 0) * close["n"])
                data_console().print(f"{label}: {passed:,} of {close['n']:,} allclose tests pass", markup=False)
    say(f"Replay error of the capture: {run.summary['capture']['replay_error']:.1e}. Run folder: {run.path}")
