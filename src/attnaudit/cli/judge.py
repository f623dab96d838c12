"""`attnaudit judge`: judge claims about training and robustness from training runs and evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, say

if TYPE_CHECKING:
    from attnaudit.records.evaluated_networks import Evaluation
    from attnaudit.records.training import TrainingRun


def judge(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders written by attnaudit train or attnaudit robust.", show_default=False),
    ],
    claims: Annotated[str, typer.Option(help="Claims to judge: comma-separated, or `all`.")] = "all",
    out: Annotated[Path | None, typer.Option(help="Folder for figures and their numbers.", show_default=False)] = None,
    json: options.Json = False,
) -> None:
    """Judge claims about training and robustness from training runs, finished or not, and evaluations.

    With --out, also draw test accuracy and calibrated scores by epoch, accuracy under corruptions and attacks of
    growing strength, and gains over symmetric attention.

    Examples:
        attnaudit judge attnaudit-runs/vit-small-cifar-0

        attnaudit judge attnaudit-runs/converge-* --claims scaled-attention-converges-faster --out figures/

        attnaudit judge attnaudit-runs/corrupted attnaudit-runs/attacked --claims rpc-robust
    """
    from attnaudit.claims.registry import ROBUSTNESS_CLAIMS, TRAINING_CLAIMS
    from attnaudit.errors import RunFolderError, unknown
    from attnaudit.records.evaluated_networks import open_evaluations
    from attnaudit.records.run_folder import RunFolder, RunKind
    from attnaudit.records.training import open_trainings
    from attnaudit.report.judged import judged_verdicts

    for path in runs:
        if not path.is_dir():
            raise RunFolderError(
                f"The folder {path} does not exist: give folders written by attnaudit train or attnaudit robust."
            )
    kinds = {path: RunFolder(path).kind for path in runs}
    evaluations = open_evaluations([path for path in runs if kinds[path] is RunKind.ROBUSTNESS])
    trainings = open_trainings([path for path in runs if kinds[path] is not RunKind.ROBUSTNESS])
    judges = {name: (claim.needs, partial(claim.judge, trainings)) for name, claim in TRAINING_CLAIMS.items()}
    judges |= {name: (claim.needs, partial(claim.judge, evaluations)) for name, claim in ROBUSTNESS_CLAIMS.items()}
    everything = (*(TRAINING_CLAIMS if trainings else ()), *(ROBUSTNESS_CLAIMS if evaluations else ()))
    chosen = everything if claims == "all" else options.listed(claims, "--claims")
    for name in chosen:
        if name not in judges:
            raise unknown("claim about training or robustness", name, judges)
    verdicts = []
    for name in chosen:
        needs, judged = judges[name]
        found = judged()
        verdicts += found
        if not found:
            say(f"{name} is not judged: it needs {needs}.")
    if json:
        print_json([asdict(verdict) for verdict in verdicts])
    elif verdicts:
        data_console().print(judged_verdicts(verdicts))
    if out is not None:
        _draw(trainings, evaluations, out)


def _draw(trainings: Sequence[TrainingRun], evaluations: Sequence[Evaluation], out: Path) -> None:
    from attnaudit.cli.delivery import deliver
    from attnaudit.report.robust_curves import holding_records
    from attnaudit.report.robust_table import group_records
    from attnaudit.report.robustness_gains import gains_figure
    from attnaudit.report.robustness_holding import holding_figure
    from attnaudit.report.training_curves import accuracy_records, score_records
    from attnaudit.report.training_figures import accuracy_figure, score_figure

    if accuracies := accuracy_records(trainings):
        deliver("accuracy", accuracies, accuracy_figure, out, json=False)
    if scores := score_records(trainings):
        deliver("scores", scores, score_figure, out, json=False)
    if held := holding_records(evaluations):
        deliver("held", held, holding_figure, out, json=False)
    gains = group_records(evaluations)
    if any(record.gain is not None for record in gains):
        deliver("gains", gains, gains_figure, out, json=False)
    elif gains:
        say("Gains are not drawn: none of the networks has symmetric attention, with which others are compared.")
