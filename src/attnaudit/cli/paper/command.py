"""The verb: what can be repeated, and with which options."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import say
from attnaudit.cli.options import Device
from attnaudit.cli.paper.curves import draw_training
from attnaudit.cli.paper.figures import draw_gammas, draw_norms
from attnaudit.cli.paper.forensics import try_conventions
from attnaudit.cli.paper.models import named_or_known
from attnaudit.cli.paper.tables import repeat_table
from attnaudit.errors import UsageError


class Item(StrEnum):
    """What of the study can be repeated."""

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
        """Whether it is about language encoders."""
        return self in (Item.TABLE4, Item.FIGURE5)

    @property
    def is_table(self) -> bool:
        """Whether it is an audit in units, rather than an image of a few inputs."""
        return self in (Item.TABLE1, Item.TABLE2, Item.TABLE3, Item.TABLE4)

    @property
    def about_training(self) -> bool:
        """Whether it is drawn from training runs, rather than from models."""
        return self in (Item.FIGURE1, Item.FIGURE4)

    @property
    def study_inputs(self) -> int:
        """How many images or lines the study used; ours for what it does not have."""
        from attnaudit.papers.tables import TABLES

        others = {Item.FIGURE2: 1, Item.FIGURE3: 1, Item.FIGURE5: 2, Item.FORENSICS: 5}
        return others[self] if self in others else TABLES[self.value].inputs


def paper(
    item: Annotated[Item, typer.Argument(help="Which table or figure.", show_default=False)],
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL|RUN",
            help="Models; default: those of the study whose weights are found. For figure1 and figure4: folders that "
            "attnaudit train wrote.",
            show_default=False,
        ),
    ] = None,
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[
        int | None, typer.Option(help="How many images or lines; default: as many as the study.", show_default=False)
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

    `forensics` tries 96 conventions for the eigenvalues Teo & Nguyen (2024) report.

    Examples:
        attnaudit paper table1 deit_tiny_patch16_224 --weights deit_tiny.safetensors --images imagenet/val

        attnaudit paper table2 --download --images imagenet/val --workers 8

        attnaudit paper table1 --download --images /data/imagenet/val --cluster tcp://127.0.0.1:8786

        attnaudit paper figure3 vit_tiny_patch16_224 --download --images imagenet/val --out figures/

        attnaudit paper figure1 attnaudit-runs/study-vit-tiny attnaudit-runs/study-deit-tiny --out figures/
    """
    from attnaudit.cli import work

    resources = work.resources(workers, cluster, memory)
    if cluster is not None and not item.is_table:
        raise UsageError(f"{item.value} is one short computation in this process: --cluster is for tables.")
    folder = out or work.RUNS / item.value
    if item.about_training:
        of_models = {"weights": weights, "random-weights": random_weights, "download": download}
        of_inputs = {"images": images, "text": text, "limit": limit, "first": first}
        _refuse(item, {**of_models, **of_inputs})
        draw_training(item.value, models or (), folder, json)
        return
    specs = named_or_known(
        models or (),
        language=item.about_language,
        weights=weights,
        random_weights=random_weights,
        seed=seed,
        download=download,
    )
    for spec in specs:
        if spec.random_seed is not None:
            say(f"{spec.name} has RANDOM weights: its numbers say nothing about training.")
    place = work.device_name(device)
    number = item.study_inputs if limit is None else limit
    choice = work.Choice(images, text, number, seed, first, samples_allowed=False)
    if item.is_table:
        repeat_table(item.value, specs, choice, place, resources, out, json)
    elif item is Item.FORENSICS:
        try_conventions(specs, choice, place, folder, json)
    elif item is Item.FIGURE3:
        draw_gammas(item.value, specs, choice, place, folder, json)
    else:
        draw_norms(item.value, specs, choice, place, folder, json, language=item.about_language)


def _refuse(item: Item, options: Mapping[str, object]) -> None:
    """A figure of training takes neither weights nor inputs: its runs had them."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise UsageError(
                f"{item.value} is drawn from training runs, which had their own inputs: leave out --{option}."
            )
