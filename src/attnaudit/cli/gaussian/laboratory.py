"""Shared by the commands of `attnaudit gaussian`: options, and how results are printed."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.report.console import data_console, print_json

if TYPE_CHECKING:
    from attnaudit.api.laboratory import Experiment


class OptimiserChoice(StrEnum):
    """The optimiser for training on fresh prompts."""

    ADAM = "adam"
    SGD = "sgd"


Dim = Annotated[int | None, typer.Option(help="Dimension, with eigenvalues 1, 1/2, 1/3, … and random eigenvectors.")]
CovarianceFile = Annotated[
    Path | None, typer.Option("--covariance", help="Your own covariance, .npy or .csv.", show_default=False)
]
Runs = Annotated[int, typer.Option(min=2, help="Independent training runs per head.")]
Steps = Annotated[int, typer.Option(min=1, help="Training steps per run.")]
Prompts = Annotated[int | None, typer.Option(min=1, help="Fresh prompts per step. Default: 64, more if short.")]
Rate = Annotated[float, typer.Option(min=1e-6, help="Initial learning rate; it falls to 0 along a cosine.")]
OptimiserOption = Annotated[OptimiserChoice, typer.Option(help="Optimiser.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for figure and data. Default: `gaussian-<command>` in attnaudit-runs.", show_default=False
    ),
]


def show(experiment: Experiment, json: bool) -> None:
    """Print the table of an experiment and its verdicts."""
    from attnaudit.report.gaussian import check_rows, check_table
    from attnaudit.report.verdicts import verdict_report

    checks, judgement = experiment.findings.checks, experiment.judgement
    if json:
        print_json({"checks": check_rows(checks), "verdicts": [asdict(verdict) for verdict in judgement.verdicts]})
        return
    data_console().print(check_table(experiment.title, checks))
    if judgement.verdicts:
        data_console().print(verdict_report(judgement.verdicts, judgement.levels))
