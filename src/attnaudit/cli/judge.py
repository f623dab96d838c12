"""`attnaudit judge`: what trainings say of claims about training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, say

if TYPE_CHECKING:
    from attnaudit.claims.training import Training


def judge(
    runs: Annotated[list[Path], typer.Argument(help="Folders that attnaudit train wrote.", show_default=False)],
    claims: Annotated[str, typer.Option(help="Claims to judge, comma-separated, or `all`.")] = "all",
    out: Annotated[Path | None, typer.Option(help="Folder for pictures and their numbers.", show_default=False)] = None,
    json: options.Json = False,
) -> None:
    """Judge claims about training on the folders of trainings, finished or under way.

    With --out, also draw test accuracy and calibrated scores by epoch.

    Examples:
        attnaudit judge attnaudit-runs/vit-small-cifar-0

        attnaudit judge attnaudit-runs/converge-* --claims scaled-attention-converges-faster --out pictures/
    """
    from attnaudit.claims.registry import TRAINING_CLAIMS
    from attnaudit.claims.training import open_trainings
    from attnaudit.errors import UsageError
    from attnaudit.report.training import training_verdicts

    chosen = tuple(TRAINING_CLAIMS) if claims == "all" else options.names(claims)
    for name in chosen:
        if name not in TRAINING_CLAIMS:
            raise UsageError(f"{name!r} is no claim about training; there are {', '.join(TRAINING_CLAIMS)}.")
    trainings = open_trainings(runs)
    verdicts = []
    for name in chosen:
        found = TRAINING_CLAIMS[name].judge(trainings)
        verdicts += found
        if not found:
            say(f"{name} is not judged: it needs {TRAINING_CLAIMS[name].needs}.")
    if json:
        print_json([asdict(verdict) for verdict in verdicts])
    elif verdicts:
        data_console().print(training_verdicts(verdicts))
    if out is not None:
        _draw(trainings, out)


def _draw(trainings: Sequence[Training], out: Path) -> None:
    from attnaudit.claims.training_curves import accuracy_records, score_records
    from attnaudit.cli.delivery import deliver
    from attnaudit.report.training_figures import accuracy_figure, score_figure

    if accuracies := accuracy_records(trainings):
        deliver("accuracy", accuracies, accuracy_figure, out, json=False)
    if scores := score_records(trainings):
        deliver("scores", scores, score_figure, out, json=False)
