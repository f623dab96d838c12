"""`attnaudit gaussian digits`: compare heads trained on real data with PCA."""

from __future__ import annotations

from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.gaussian.laboratory import Out, Steps, show


def digits(
    ranks: Annotated[str, typer.Option(help="Ranks of the heads.")] = "1,2,3,5,7,10",
    length: Annotated[int, typer.Option(help="Tokens per prompt, for the softmax head.")] = 128,
    steps: Steps = 600,
    seed: options.Seed = defaults.SEED,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Compare heads trained on scikit-learn's digits with PCA, and the time both take.

    Examples:
        attnaudit gaussian digits
    """
    from attnaudit.api import laboratory

    chosen = options.whole_numbers(ranks, "--ranks")
    show(laboratory.digits(ranks=chosen, length=length, steps=steps, seed=seed, out=out), json)
