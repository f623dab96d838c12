"""`attnaudit paper`: repeat a table or figure of the reproduction study, the published numbers beside ours."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, progress_bar, say
from attnaudit.cli.options import Device
from attnaudit.errors import AttnAuditError, UsageError, WeightsError

if TYPE_CHECKING:
    from attnaudit.capture import Capture
    from attnaudit.sources.images import ImageItem
    from attnaudit.sources.model import ModelSpec


_FORENSIC_PICTURES = 5


class Item(StrEnum):
    """What of the study can be repeated."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    TABLE3 = "table3"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FORENSICS = "forensics"


def paper(
    item: Annotated[Item, typer.Argument(help="Which table or figure.", show_default=False)],
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Models; default: those of the table whose weights are found.", show_default=False),
    ] = None,
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    limit: Annotated[
        int | None, typer.Option(help="How many pictures; default: as many as the study.", show_default=False)
    ] = None,
    first: options.First = False,
    seed: options.Seed = 0,
    device: options.DeviceOption = Device.AUTO,
    workers: options.Workers = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Repeat a table or figure of Sarıtaş & Yıldız (2025) under their protocol.

    `forensics` tries 96 conventions for the eigenvalues Teo & Nguyen (2024) report.

    Examples:
        attnaudit paper table1 deit_tiny_patch16_224 --weights deit_tiny.safetensors --images imagenet/val

        attnaudit paper table2 --download --images imagenet/val --workers 8

        attnaudit paper figure3 vit_tiny_patch16_224 --download --images imagenet/val --out figures/
    """
    from attnaudit.cli import work

    specs = _specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    for spec in specs:
        if spec.random_seed is not None:
            say(f"{spec.name} has RANDOM weights: its numbers say nothing about training.")
    device_name = work.device_name(device)
    if item is Item.FORENSICS:
        pictures = work.pictures(
            images, _FORENSIC_PICTURES if limit is None else limit, seed, first=first, samples_allowed=False
        )
        _forensics(specs, pictures, device_name, out or work.RUNS / item.value, json)
    elif item.value.startswith("figure"):
        pictures = work.pictures(images, 1 if limit is None else limit, seed, first=first, samples_allowed=False)
        _figure(item, specs, pictures, seed, device_name, out or work.RUNS / item.value, json)
    else:
        _table(item, specs, (images, limit, seed, first), device_name, workers, out, json)


def _specs(
    names: Sequence[str] | None, *, weights: Path | None, random_weights: bool, seed: int, download: bool
) -> list[ModelSpec]:
    """The named models, or every model of the study that can be had here."""
    from attnaudit.claims.published import VISION_MODELS
    from attnaudit.cli import work

    if names:
        return work.specs(names, weights=weights, random_weights=random_weights, seed=seed, download=download)
    if weights is not None:
        raise UsageError("--weights needs the name of its model, e.g. attnaudit paper table1 deit_tiny_patch16_224.")
    found: list[ModelSpec] = []
    missing: list[str] = []
    for name in VISION_MODELS:
        try:
            found += work.specs([name], weights=None, random_weights=random_weights, seed=seed, download=download)
        except WeightsError:
            missing.append(name)
    if not found:
        raise WeightsError(
            "None of the ten models of the study has local weights: name one with --weights FILE, or use --download."
        )
    if missing:
        say(f"Without local weights, and left out ({len(missing)} of {len(VISION_MODELS)}): {', '.join(missing)}.")
    return found


def _table(
    item: Item,
    specs: Sequence[ModelSpec],
    choice: tuple[Path | None, int | None, int, bool],
    device: str,
    workers: int | None,
    out: Path | None,
    json: bool,
) -> None:
    from attnaudit.claims.tables import TABLES, compare
    from attnaudit.cli import work
    from attnaudit.evidence import SHARD, Settings, plan_audit
    from attnaudit.protocol import Protocol
    from attnaudit.report.figures import write_csv
    from attnaudit.report.terminal import comparison_table
    from attnaudit.sources.images import image_shards

    table = TABLES[item.value]
    images, limit, seed, first = choice
    pictures = work.pictures(images, table.images if limit is None else limit, seed, first=first, samples_allowed=False)
    settings = Settings(protocol=Protocol.PAPER, families=table.families, seed=seed, device=device)
    plan = plan_audit(specs, image_shards(pictures, SHARD), settings)
    run = work.carry_out(plan, out, workers, f"{item.value}, {len(pictures)} pictures")
    work.report_losses(run)
    comparisons = [
        entry for label, c in run.summary["models"].items() for entry in compare(table, label, c["observed"])
    ]
    write_csv(comparisons, run.path / f"{item.value}.csv")
    if json:
        data_console().print_json(json_module.dumps([asdict(entry) for entry in comparisons]))
    else:
        data_console().print(comparison_table(table, comparisons))
        for label, controls in run.summary["models"].items():
            if (close := controls["observed"].get("allclose")) is not None:
                passed = round((close["mean"] or 0) * close["n"])
                data_console().print(f"{label}: {passed:,} of {close['n']:,} allclose tests pass", markup=False)
    say(f"Replay error of the capture: {run.summary['capture']['replay_error']:.1e}. Run folder: {run.path}")


def _forensics(specs: Sequence[ModelSpec], pictures: Sequence[ImageItem], device: str, out: Path, json: bool) -> None:
    from attnaudit.claims.forensics import investigate
    from attnaudit.report.figures import write_rows
    from attnaudit.report.terminal import forensics_table

    _make_folder(out)
    for spec in specs:
        with progress_bar(f"96 conventions, {len(pictures)} pictures") as progress:
            progress(0, 1)
            findings = investigate(_captured(spec, pictures, device).layers)
            progress(1, 1)
        table = out / f"forensics-{spec.name}.csv"
        write_rows([finding.record() for finding in findings], table)
        if json:
            data_console().print_json(json_module.dumps([finding.record() for finding in findings]))
        else:
            data_console().print(forensics_table(spec.label, findings))
        say(f"Wrote {table}.")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AttnAuditError(f"{path} cannot be written ({error.strerror}): give --out another folder.") from error


def _figure(
    item: Item,
    specs: Sequence[ModelSpec],
    pictures: Sequence[ImageItem],
    seed: int,
    device: str,
    out: Path,
    json: bool,
) -> None:
    from attnaudit.claims.figures import GAMMA_BLOCK, gamma_records, norm_records
    from attnaudit.report.figures import gamma_figure, norm_figure, write_csv

    _make_folder(out)
    picture, table = out / f"{item.value}.svg", out / f"{item.value}.csv"
    norms, gammas = [], []
    with progress_bar(item.value) as progress:
        for done, spec in enumerate(specs):
            progress(done, len(specs))
            layers = _captured(spec, pictures, device).layers
            if item is Item.FIGURE2:
                norms += norm_records(spec.label, layers)
            else:
                gammas += gamma_records(spec.label, layers[GAMMA_BLOCK], seed)
        progress(len(specs), len(specs))
    if item is Item.FIGURE2:
        norm_figure(norms, picture)
    else:
        gamma_figure(gammas, picture)
    records = norms or gammas
    write_csv(records, table)
    if json:
        data_console().print_json(json_module.dumps([asdict(record) for record in records]))
    say(f"Wrote {picture} and {table}.")


def _captured(spec: ModelSpec, pictures: Sequence[ImageItem], device: str) -> Capture:
    from attnaudit.capture import capture
    from attnaudit.errors import InputError
    from attnaudit.protocol import Protocol
    from attnaudit.sources.images import ImageShard
    from attnaudit.sources.model import load_model

    model = load_model(spec)
    prepared = ImageShard(tuple(pictures)).prepare(model, Protocol.PAPER)
    for name, reason in prepared.skipped:
        say(f"skipped input {name}: {reason}")
    if prepared.inputs is None:
        raise InputError("None of the pictures could be read.")
    return capture(model.module.to(device), prepared.inputs.to(device), prepared.names, model_name=model.label)  # type: ignore[union-attr]
