"""`attnaudit train`: train a small transformer on images or text, with a monitor of its heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, detailed_progress_bar, print_json, say
from attnaudit.cli.options import Device

if TYPE_CHECKING:
    from attnaudit.records.recipe import Recipe


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (attnaudit ls recipes) or a .yaml file.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Images: folder with train*.parquet and test*.parquet (columns img, label), or with train/ and val/ "
            "of class folders. Text: folder with train*.txt and test*.txt, WikiText's, or a file. Default: the "
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
        typer.Option(min=1, help="Number of images or lines per half. Default: all.", show_default=False),
    ] = None,
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.AUTO,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the model with torch.compile.")] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Record a step as a CUDA graph and replay it; faster for small models.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read images, with timm's augmentation.")] = 4,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default: attnaudit-runs/<recipe>-<seed>.", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Train a vision transformer or a language model by a recipe; after an interruption the same command resumes.

    On several GPUs: torchrun --nproc-per-node 8 -m attnaudit train deit-tiny --data /data/imagenet

    Examples:
        attnaudit train vit-small-cifar --data cifar10/ --compile --graph

        attnaudit train study-vit-tiny --data /data/imagenet --workers 16

        attnaudit train vit-small-cifar --set model.attention=rpc --set model.attention_layers=[0] --seed 1

        attnaudit train vit-small-cifar --epochs 1 --limit 512 --set batch=64 --set model.depth=2

        attnaudit train lm --data wikitext/ --set model.attention=rpc --set model.attention_layers=[0,1]
    """
    from attnaudit.cli import work
    from attnaudit.training.cuda_graph import check_recordable
    from attnaudit.training.distributed import DeviceSettings, joined_processes
    from attnaudit.training.loop import train as run
    from attnaudit.training.recipe_file import read_recipe
    from attnaudit.training.tasks import read_data

    changes = [*(change or ()), *([f"epochs={epochs}"] if epochs else [])]
    chosen = read_recipe(recipe, changes)
    with joined_processes(work.device_name(device)) as (ranks, own_device):
        settings = DeviceSettings(own_device, workers, compiled, graph, ranks=ranks)
        if graph:
            check_recordable(chosen, settings)
        halves = read_data(chosen, _place(chosen, data), limit)
        folder = out or work.RUNS / f"{chosen.name}-{seed}"
        with _watched(ranks.is_main) as (progress, tell):
            trained = run(
                chosen,
                halves,
                folder,
                seed=seed,
                device_settings=settings,
                progress=progress,
                tell=tell,
            )
    if not ranks.is_main:
        return
    if json:
        print_json(trained.facts)
    else:
        data_console().print(repr(trained), markup=False)
    say(f"Weights, card, history and evidence: {folder}. Audit it: attnaudit audit {folder}")


@contextmanager
def _watched(leads: bool) -> Iterator[tuple[Callable[[int, int, str], None], Callable[[str], None]]]:
    """A progress bar and messages, on the leading rank only."""
    if not leads:
        yield (lambda done, total, words: None), (lambda line: None)
        return
    with detailed_progress_bar("training") as (progress, tell):
        yield progress, tell


def _place(recipe: Recipe, data: Path | None) -> Path:
    from attnaudit.errors import InputError
    from attnaudit.sources.data import VARIABLE, data_file

    found = data or data_file(recipe.data)
    if found is None:
        raise InputError(f"No training data was found: give --data DIR, or put {recipe.data}/ into {VARIABLE}.")
    return found
