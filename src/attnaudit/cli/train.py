"""`attnaudit train`: train a small transformer on images or text, with a monitor of its heads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.report.console import data_console, print_json, say


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (attnaudit ls recipes) or a .yaml file.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Images: folder with train*.parquet and test*.parquet (columns img, label), or with train/ and val/ "
            "of class folders. Segmentation: the same Parquet files with columns image and mask, or ADE20K's images/ "
            "and annotations/. Text: folder with train*.txt and test*.txt, WikiText's, or a file. "
            "Sentences: folder with train.tsv and test.tsv (columns sentence, label). Default: the "
            "recipe's folder in $ATTNAUDIT_DATA.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs. Default: the recipe's.", show_default=False)
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, as in --set model.depth=6; repeatable.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Number of images, sentences or lines per half. Default: all.", show_default=False),
    ] = None,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device(defaults.DEVICE),
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the model with torch.compile.")] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Record a step as a CUDA graph and replay it; faster for small models.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that read images, with timm's augmentation.")
    ] = defaults.READERS,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default: `<recipe>-<seed>` in attnaudit-runs.", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Train a vision transformer or language model, or fine-tune an encoder, by a recipe; repeating it resumes.

    On several GPUs: torchrun --nproc-per-node 8 -m attnaudit train deit-tiny --data /data/imagenet

    Examples:
        attnaudit train vit-small-cifar --data cifar10/ --compile --graph

        attnaudit train study-vit-tiny --data /data/imagenet --workers 16

        attnaudit train vit-small-cifar --set model.attention=rpc --set model.attention_layers=[0] --seed 1

        attnaudit train vit-small-cifar --epochs 1 --limit 512 --set batch=64 --set model.depth=2

        attnaudit train segment-camvid --data camvid/ --compile --graph

        attnaudit train lm --data wikitext/ --set model.attention=rpc --set model.attention_layers=[0,1]
    """
    from attnaudit.api.trainings import train as trained

    result = trained(
        recipe,
        data,
        epochs=epochs,
        change=change,
        limit=limit,
        seed=seed,
        device=device.value,
        compiled=compiled,
        graph=graph,
        workers=workers,
        out=out,
    )
    if os.environ.get("RANK", "0") != "0":  # of the processes that torchrun starts, the first one prints
        return
    if json:
        print_json(result.facts)
    else:
        data_console().print(repr(result), markup=False)
    say(f"Weights, card, history and evidence: {result.path}. Audit it: attnaudit audit {result.path}")
