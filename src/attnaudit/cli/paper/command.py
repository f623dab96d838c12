"""The command `attnaudit paper`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import say
from attnaudit.cli.options import Device
from attnaudit.cli.paper.curves import draw_training
from attnaudit.cli.paper.figures import draw_gammas, draw_norms
from attnaudit.cli.paper.forensics import try_conventions
from attnaudit.cli.paper.tables import repeat_table
from attnaudit.errors import UsageError

if TYPE_CHECKING:
    from attnaudit.sources.model import ModelSpec


class Item(StrEnum):
    """The tables and figures that can be repeated."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    TABLE3 = "table3"
    TABLE4 = "table4"
    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FIGURE4 = "figure4"
    FIGURE5 = "figure5"
    FORENSICS = "forensics"

    @property
    def about_language(self) -> bool:
        """Whether it shows language encoders."""
        return self in (Item.TABLE4, Item.FIGURE5)

    @property
    def is_table(self) -> bool:
        """Whether it is a table, computed as an audit, rather than a figure of a few inputs."""
        return self in (Item.TABLE1, Item.TABLE2, Item.TABLE3, Item.TABLE4)

    @property
    def about_training(self) -> bool:
        """Whether it is drawn from training runs, not from models."""
        return self in (Item.FIGURE1, Item.FIGURE4)

    @property
    def study_inputs(self) -> int:
        """The number of images or lines that the study used; for the forensics our choice."""
        from attnaudit.papers.study import STUDY_INPUTS

        return STUDY_INPUTS[self.value]


def paper(
    item: Annotated[Item, typer.Argument(help="The table or figure.", show_default=False)],
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL|RUN",
            help="Models. Default: those of the study with local weights. For figure1 and figure4: folders written by "
            "attnaudit train.",
            show_default=False,
        ),
    ] = None,
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[
        int | None, typer.Option(help="Number of images or lines. Default: as in the study.", show_default=False)
    ] = None,
    first: options.First = False,
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.AUTO,
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Repeat a table or figure of Sarıtaş & Yıldız (2025) under their protocol.

    `forensics` tries 96 conventions for the eigenvalues reported by Teo & Nguyen (2024).

    Examples:
        attnaudit paper table1 deit_tiny_patch16_224 --weights deit_tiny.safetensors --images imagenet/val

        attnaudit paper table2 --download --images imagenet/val --workers 8

        attnaudit paper table1 --download --images /data/imagenet/val --cluster tcp://127.0.0.1:8786

        attnaudit paper figure3 vit_tiny_patch16_224 --download --images imagenet/val --out figures/

        attnaudit paper figure1 attnaudit-runs/study-vit-tiny attnaudit-runs/study-deit-tiny --out figures/
    """
    from attnaudit.cli import work
    from attnaudit.sources.selection import InputSelection, select_specs

    resources = work.resources(workers, cluster, memory)
    if cluster is not None and not item.is_table:
        raise UsageError(f"--cluster is for tables only: {item.value} is one short computation.")
    folder = out or work.RUNS / item.value
    if item.about_training:
        of_models = {"weights": weights, "random-weights": random_weights, "download": download}
        of_inputs = {"images": images, "text": text, "limit": limit, "first": first}
        _refuse(item, {**of_models, **of_inputs})
        draw_training(item.value, models or (), folder, json)
        return
    if models:
        specs = select_specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    elif weights is not None:
        raise UsageError("--weights needs a model name, as in attnaudit paper table1 deit_tiny_patch16_224.")
    else:
        specs = _study_models(item.about_language, random_weights, seed, download)
    for spec in specs:
        if spec.random_seed is not None:
            say(f"{spec.name} has RANDOM weights: its numbers say nothing about training.")
    place = work.device_name(device)
    number = item.study_inputs if limit is None else limit
    choice = InputSelection(options.one_of(images=images, text=text), number, seed, first, samples=False)
    if item.is_table:
        repeat_table(item.value, specs, choice, place, resources, out, json)
    elif item is Item.FORENSICS:
        try_conventions(specs, choice, place, folder, json)
    elif item is Item.FIGURE3:
        draw_gammas(item.value, specs, choice, place, folder, json)
    else:
        draw_norms(item.value, specs, choice, place, folder, json, language=item.about_language)


def _study_models(language: bool, random_weights: bool, seed: int, download: bool) -> list[ModelSpec]:
    from attnaudit.papers.study import study_models

    models = study_models(language=language, random_weights=random_weights, seed=seed, download=download)
    if models.missing:
        total = len(models.missing) + len(models.available)
        say(f"Left out {len(models.missing)} of {total} models without local weights: {', '.join(models.missing)}.")
    return list(models.available)


def _refuse(item: Item, options: Mapping[str, object]) -> None:
    """Refuse options for weights and inputs, which the training runs have fixed."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise UsageError(f"{item.value} is drawn from training runs, which have their own inputs: omit --{option}.")
