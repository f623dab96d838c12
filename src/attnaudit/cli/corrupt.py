"""`attnaudit corrupt`: write corrupted images to files, to be used by many evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.report.console import say


def corrupt(
    model: Annotated[str, typer.Argument(help="A model, whose preprocessing determines size and crop of the images.")],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    images: options.ClassFolders = None,
    parquet: options.Parquet = None,
    corruptions: options.Corruptions = "all",
    severities: options.Severities = options.joined(defaults.SEVERITIES),
    limit: Annotated[int | None, typer.Option(min=1, help="Number of images to draw. Default: all.")] = None,
    seed: options.Seed = defaults.SEED,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path(defaults.CORRUPTED),
) -> None:
    """Write clean.parquet and CORRUPTION/SEVERITY.parquet, for attnaudit robust --corrupted.

    The same seed gives the same images for any number of workers; existing files are not written again.

    Examples:
        attnaudit corrupt vit-small-cifar --parquet cifar10/test.parquet --limit 1000 --workers 2 --out corrupted

        attnaudit corrupt timm:deit_tiny_patch16_224 --images imagenet/val --corruptions fog,snow --severities 3
    """
    from attnaudit.api.robustness import corrupt as corrupted

    folder = corrupted(
        model,
        options.one_of(images=images, parquet=parquet),
        weights=weights,
        random_weights=random_weights,
        corruptions=options.names_or_all(corruptions, "--corruptions"),
        severities=options.whole_numbers(severities, "--severities"),
        limit=limit,
        seed=seed,
        workers=workers,
        out=out,
    )
    typer.echo(str(folder))
    say(
        f"To use them: attnaudit robust {model} --corrupted {out} --corruptions {corruptions} --severities {severities}"
    )
