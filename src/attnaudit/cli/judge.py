"""`attnaudit judge`: judge claims about training and robustness from training runs and evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
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
    from attnaudit.claims import jury
    from attnaudit.claims.claim import RecordKind
    from attnaudit.claims.registry import claims_about, claims_named
    from attnaudit.errors import RunFolderError
    from attnaudit.records.evaluated_networks import open_evaluations
    from attnaudit.records.run_folder import RunFolder, RunKind
    from attnaudit.records.training import open_trainings
    from attnaudit.report.verdicts import verdict_report

    for path in runs:
        if not path.is_dir():
            raise RunFolderError(
                f"The folder {path} does not exist: give folders written by attnaudit train or attnaudit robust."
            )
    kinds = {path: RunFolder(path).kind for path in runs}
    evaluations = open_evaluations([path for path in runs if kinds[path] is RunKind.ROBUSTNESS])
    trainings = open_trainings([path for path in runs if kinds[path] is not RunKind.ROBUSTNESS])
    found = {RecordKind.TRAINING: trainings, RecordKind.EVALUATION: evaluations}
    if claims == "all":
        chosen = claims_about(*(kind for kind, records in found.items() if records))
    else:
        chosen = claims_named(options.listed(claims, "--claims"), *found)
    judgement = jury.judge(chosen, [*trainings, *evaluations])
    judged = {verdict.claim for verdict in judgement.verdicts}
    for claim in chosen:
        if claim.name not in judged:
            say(f"{claim.name} is not judged: it needs {claim.needs}.")
    if json:
        print_json([asdict(verdict) for verdict in judgement.verdicts])
    elif judgement.verdicts:
        data_console().print(verdict_report(judgement.verdicts, judgement.levels))
    if out is not None:
        _draw(trainings, evaluations, out)


def _draw(trainings: Sequence[TrainingRun], evaluations: Sequence[Evaluation], out: Path) -> None:
    from attnaudit.cli.delivery import deliver
    from attnaudit.report.accuracy_by_strength import strength_figure, strength_records
    from attnaudit.report.seed_gains import gain_figure, gain_records
    from attnaudit.report.training_figures import accuracy_figure, accuracy_records, score_figure, score_records

    if accuracies := accuracy_records(trainings):
        deliver("accuracy", accuracies, accuracy_figure, out, json=False)
    if scores := score_records(trainings):
        deliver("scores", scores, score_figure, out, json=False)
    if accuracies_by_strength := strength_records(evaluations):
        deliver("accuracy-by-strength", accuracies_by_strength, strength_figure, out, json=False)
    gains = gain_records(evaluations)
    if any(record.gain is not None for record in gains):
        deliver("gains", gains, gain_figure, out, json=False)
    elif gains:
        say("Gains are not drawn: none of the networks has symmetric attention, with which others are compared.")
