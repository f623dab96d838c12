"""Figures 1 and 4: quantities over training, drawn from folders written by `attnaudit train`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit.cli.console import say
from attnaudit.cli.delivery import deliver
from attnaudit.errors import UsageError


def draw_training(name: str, folders: Sequence[str], out: Path, json: bool) -> None:
    """Draw the curves of every run, one panel each, with the published points of the matching network."""
    from attnaudit.papers.training_curves import FIGURE1, FIGURE4, curves
    from attnaudit.records.training import BATCHES, open_training
    from attnaudit.report.study_curves import error_curves, norm_curves

    if not folders:
        raise UsageError(
            f"{name} is drawn from training runs: give the folder of attnaudit train study-vit-tiny --data DIR."
        )
    runs = [open_training(Path(folder)) for folder in folders]
    measures, draw = (FIGURE1, norm_curves) if name == "figure1" else (FIGURE4, error_curves)
    drawn = curves(runs, measures)
    for run, lines in zip(runs, drawn, strict=True):
        if lines.published is None:
            say(f"{lines.run} has heads of dimension {lines.width}, not 64 or 32 as in the study: no published points.")
        for batch in (name for name in BATCHES if name not in run.batches):
            say(f"{lines.run} was not measured on a {batch} batch.")
    records = [record for lines in drawn for record in lines.records]
    deliver(name, records, lambda _, paths: draw(drawn, paths), out, json)
