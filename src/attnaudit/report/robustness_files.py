"""The files of an evaluation next to its evidence: accuracies as CSV, curves, and a page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from attnaudit.errors import MissingExtraError
from attnaudit.records.evaluation import EvaluationSummary
from attnaudit.report.data_files import write_rows
from attnaudit.report.drawing import for_screen_and_print
from attnaudit.report.page import FILE
from attnaudit.report.page.robustness import write_robustness_page
from attnaudit.report.robustness import accuracy_rows
from attnaudit.report.robustness_figures import accuracy_curves


def write_evaluation_files(folder: Path, summary: EvaluationSummary, title: str) -> list[Path]:
    """Write the files to the run folder, with curves if matplotlib is installed; the page is the last of them."""
    table, curves = folder / "accuracy.csv", for_screen_and_print(folder, "curves")
    write_rows(accuracy_rows(summary), table)
    drawn = False
    with suppress(MissingExtraError):
        drawn = accuracy_curves(summary, curves)
    page = write_robustness_page(summary, title, curves[0] if drawn else None, folder / FILE)
    return [table, *(curves if drawn else ()), page]
