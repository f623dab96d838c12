"""`attnaudit judge`: what trainings say of claims about training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, say


def judge(
    runs: Annotated[list[Path], typer.Argument(help="Folders that attnaudit train wrote.", show_default=False)],
    claims: Annotated[str, typer.Option(help="Claims to judge, comma-separated, or `all`.")] = "all",
    json: options.Json = False,
) -> None:
    """Judge claims about training on the folders of trainings, finished or under way.

    Examples:
        attnaudit judge attnaudit-runs/vit-small-cifar-0

        attnaudit judge attnaudit-runs/converge-* --claims scaled-attention-converges-faster
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
