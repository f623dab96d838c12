"""Figures as files: SVG and PDF, with their numbers as CSV."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.files import make_folder
from attnaudit.records.training import TrainingRun
from attnaudit.report.accuracy_by_strength import strength_figure, strength_records
from attnaudit.report.data_files import write_csv
from attnaudit.report.drawing import for_screen_and_print
from attnaudit.report.seed_gains import gain_figure, gain_records
from attnaudit.report.training_figures import accuracy_figure, accuracy_records, score_figure, score_records

_log = logging.getLogger(__name__)
#: Draws records to several files.
Draw = Callable[[Sequence[Any], Sequence[Path]], None]


def write_figure(name: str, records: Sequence[Any], draw: Draw, out: Path) -> None:
    """Write the files of one figure to a folder."""
    make_folder(out)
    figures, table = for_screen_and_print(out, name), out / f"{name}.csv"
    draw(records, figures)
    write_csv(records, table)
    _log.info("Wrote %s and %s.", ", ".join(map(str, figures)), table)


def write_judged_figures(trainings: Sequence[TrainingRun], evaluations: Sequence[Evaluation], out: Path) -> None:
    """Draw what claims about training and robustness were judged on.

    Test accuracy and scores by epoch, accuracy under corruptions and attacks of growing strength, and gains over
    symmetric attention.
    """
    if accuracies := accuracy_records(trainings):
        write_figure("accuracy", accuracies, accuracy_figure, out)
    if scores := score_records(trainings):
        write_figure("scores", scores, score_figure, out)
    if by_strength := strength_records(evaluations):
        write_figure("accuracy-by-strength", by_strength, strength_figure, out)
    gains = gain_records(evaluations)
    if any(record.gain is not None for record in gains):
        write_figure("gains", gains, gain_figure, out)
    elif gains:
        _log.warning("Gains are not drawn: none of the networks has symmetric attention, to compare others with.")
