"""`attnaudit judge`: judge claims about training and robustness from training runs and evaluations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.report.console import data_console, print_json

#: The exit code if a claim that was asked for by name has no verdict.
NOT_JUDGED = 1


def judge(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders written by attnaudit train or attnaudit robust.", show_default=False),
    ],
    claims: Annotated[str, typer.Option(help="Claims to judge: comma-separated, or `all`.")] = "all",
    out: Annotated[Path | None, typer.Option(help="Folder for figures and their numbers.", show_default=False)] = None,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Judge claims about training and robustness from training runs, finished or not, and evaluations.

    Exits with 1 if a claim that --claims names could not be judged.

    With --out, also draw test accuracy and scores by epoch, accuracy under corruptions and attacks of growing
    strength, and gains over symmetric attention.

    Examples:
        attnaudit judge attnaudit-runs/vit-small-cifar-0

        attnaudit judge attnaudit-runs/converge-* --claims scaled-attention-converges-faster --out figures/

        attnaudit judge attnaudit-runs/corrupted attnaudit-runs/attacked --claims rpc-robust
    """
    from attnaudit.api.judging import judge as judged
    from attnaudit.report.verdicts import verdict_report

    asked = None if claims == "all" else options.listed(claims, "--claims")
    judgement = judged(runs, claims="all" if asked is None else asked, out=out)
    if json:
        print_json([asdict(verdict) for verdict in judgement.verdicts])
    elif judgement.verdicts:
        data_console(wide=wide).print(verdict_report(judgement.verdicts, judgement.levels, wide=wide))
    if asked is not None and not {verdict.claim for verdict in judgement.verdicts}.issuperset(asked):
        raise typer.Exit(NOT_JUDGED)  # what is missing has been said
