"""`attnaudit judge`: judge claims about training and robustness from training runs and evaluations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.report.console import data_console, print_json


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

    With --out, also draw test accuracy and scores by epoch, accuracy under corruptions and attacks of growing
    strength, and gains over symmetric attention.

    Examples:
        attnaudit judge attnaudit-runs/vit-small-cifar-0

        attnaudit judge attnaudit-runs/converge-* --claims scaled-attention-converges-faster --out figures/

        attnaudit judge attnaudit-runs/corrupted attnaudit-runs/attacked --claims rpc-robust
    """
    from attnaudit.api.judging import judge as judged
    from attnaudit.report.verdicts import verdict_report

    judgement = judged(runs, claims="all" if claims == "all" else options.listed(claims, "--claims"), out=out)
    if json:
        print_json([asdict(verdict) for verdict in judgement.verdicts])
    elif judgement.verdicts:
        data_console(wide=wide).print(verdict_report(judgement.verdicts, judgement.levels, wide=wide))
