"""`attnaudit corrupt`: write corrupted images to files, to be used by many evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import labelled, options
from attnaudit.cli.console import progress_bar, say


def corrupt(
    model: Annotated[str, typer.Argument(help="A model, whose preprocessing determines size and crop of the images.")],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    images: labelled.ClassFolders = None,
    parquet: labelled.Parquet = None,
    corruptions: labelled.Corruptions = "all",
    severities: labelled.Severities = "1,2,3,4,5",
    limit: Annotated[int | None, typer.Option(min=1, help="Number of images to draw. Default: all.")] = None,
    seed: options.Seed = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("corrupted"),
) -> None:
    """Write clean.parquet and CORRUPTION/SEVERITY.parquet, for attnaudit robust --corrupted.

    The same seed gives the same images for any number of workers; existing files are not written again.

    Examples:
        attnaudit corrupt vit-small-cifar --parquet cifar10/test.parquet --limit 1000 --workers 2 --out corrupted

        attnaudit corrupt timm:deit_tiny_patch16_224 --images imagenet/val --corruptions fog,snow --severities 3
    """
    from attnaudit.cli import work
    from attnaudit.errors import UsageError
    from attnaudit.robustness.conditions import corruption_conditions
    from attnaudit.robustness.corrupted_sets import write_corrupted_sets
    from attnaudit.robustness.examples import Examples
    from attnaudit.robustness.pixels import PixelModel
    from attnaudit.sources.class_outputs import outputs_of
    from attnaudit.sources.model import load_model

    conditions = corruption_conditions(
        labelled.corruption_names(corruptions), options.whole_numbers(severities, "--severities")
    )
    if not conditions:
        raise UsageError("--corruptions none leaves nothing to write: name some, or use --corruptions all.")
    (spec,) = work.specs([model], weights=weights, random_weights=random_weights, seed=seed, download=False)
    subject = PixelModel(load_model(spec))
    data = labelled.labelled(images, parquet, subject.outputs)
    outputs_of(data, subject.outputs, subject.label)
    examples = Examples.drawn(data, limit, seed)
    say(f"Applying {len(conditions)} corruptions to {len(examples.places):,} images of {data.path}.")
    with progress_bar("corrupting") as progress:
        write_corrupted_sets(subject, examples, conditions, out, seed=seed, workers=workers, progress=progress)
    typer.echo(str(out))
    say(
        f"To use them: attnaudit robust {model} --corrupted {out} --corruptions {corruptions} --severities {severities}"
    )
