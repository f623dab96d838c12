"""`attnaudit paper`: repeat a table or figure of the reproduction study, the published numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, progress_bar, say
from attnaudit.cli.options import Device
from attnaudit.errors import ModelError, UsageError, WeightsError

if TYPE_CHECKING:
    from attnaudit.capture import Capture
    from attnaudit.cli.work import Choice
    from attnaudit.evidence import Resources
    from attnaudit.sources.inputs import Shard
    from attnaudit.sources.model import ModelSpec


class Item(StrEnum):
    """What of the study can be repeated."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    TABLE3 = "table3"
    TABLE4 = "table4"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FIGURE5 = "figure5"
    FORENSICS = "forensics"

    @property
    def about_language(self) -> bool:
        """Whether it is about language encoders."""
        return self in (Item.TABLE4, Item.FIGURE5)

    @property
    def is_table(self) -> bool:
        """Whether it is an audit in units, rather than a picture of a few inputs."""
        return self in (Item.TABLE1, Item.TABLE2, Item.TABLE3, Item.TABLE4)

    @property
    def study_inputs(self) -> int:
        """How many pictures or lines the study used; ours for what it does not have."""
        from attnaudit.claims.tables import TABLES

        others = {Item.FIGURE2: 1, Item.FIGURE3: 1, Item.FIGURE5: 2, Item.FORENSICS: 5}
        return others[self] if self in others else TABLES[self.value].inputs


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
    text: options.TextOption = None,
    limit: Annotated[
        int | None, typer.Option(help="How many pictures or lines; default: as many as the study.", show_default=False)
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
    """
    from attnaudit.cli import work

    resources = work.resources(workers, cluster, memory)
    if cluster is not None and not item.is_table:
        raise UsageError(f"{item.value} is one short computation in this process: --cluster is for tables.")
    specs = _specs(item, models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    for spec in specs:
        if spec.random_seed is not None:
            say(f"{spec.name} has RANDOM weights: its numbers say nothing about training.")
    device_name = work.device_name(device)
    number = item.study_inputs if limit is None else limit
    choice = work.Choice(images, text, number, seed, first, samples_allowed=False)
    if item.is_table:
        _table(item, specs, choice, device_name, resources, out, json)
    elif item is Item.FORENSICS:
        _forensics(specs, choice, device_name, out or work.RUNS / item.value, json)
    else:
        _figure(item, specs, choice, device_name, out or work.RUNS / item.value, json)


def _specs(
    item: Item, names: Sequence[str] | None, *, weights: Path | None, random_weights: bool, seed: int, download: bool
) -> list[ModelSpec]:
    """The named models, or every model of the study that can be had here."""
    from attnaudit.claims.published import SAME_MODEL, TABLE4, VISION_MODELS
    from attnaudit.cli import work

    if names:
        return work.specs(names, weights=weights, random_weights=random_weights, seed=seed, download=download)
    if weights is not None:
        raise UsageError("--weights needs the name of its model, e.g. attnaudit paper table1 deit_tiny_patch16_224.")
    found: list[ModelSpec] = []
    missing: list[str] = []
    ours = {theirs: name for name, theirs in SAME_MODEL.items()}
    known = [ours.get(name, f"hf:{name}") for name in TABLE4] if item.about_language else list(VISION_MODELS)
    for name in known:
        try:
            found += work.specs([name], weights=None, random_weights=random_weights, seed=seed, download=download)
        except (WeightsError, ModelError):
            missing.append(name)
    if not found:
        raise WeightsError(
            f"None of the {len(known)} models of the study has local weights: name one with --weights FILE, or use "
            "--download."
        )
    if missing:
        say(f"Without local weights, and left out ({len(missing)} of {len(known)}): {', '.join(missing)}.")
    return found


def _table(
    item: Item,
    specs: Sequence[ModelSpec],
    choice: Choice,
    device: str,
    resources: Resources,
    out: Path | None,
    json: bool,
) -> None:
    from attnaudit.claims.tables import TABLES, compare
    from attnaudit.cli import work
    from attnaudit.evidence import Settings, plan_audit
    from attnaudit.protocol import Protocol
    from attnaudit.report.figures import write_csv
    from attnaudit.report.terminal import comparison_table

    table = TABLES[item.value]
    shards, inputs = work.inputs(specs, choice, Protocol.PAPER, device)
    settings = Settings(protocol=Protocol.PAPER, families=table.families, seed=choice.seed, device=device)
    plan = plan_audit(specs, shards, settings)
    run = work.carry_out(plan, out, resources, f"{item.value}, {inputs}")
    work.report_losses(run)
    comparisons = [
        entry for label, c in run.summary["models"].items() for entry in compare(table, label, c["observed"])
    ]
    write_csv(comparisons, run.path / f"{item.value}.csv")
    if json:
        print_json([asdict(entry) for entry in comparisons])
    else:
        data_console().print(comparison_table(table, comparisons))
        for label, controls in run.summary["models"].items():
            if (close := controls["observed"].get("allclose")) is not None:
                passed = round((close["mean"] or 0) * close["n"])
                data_console().print(f"{label}: {passed:,} of {close['n']:,} allclose tests pass", markup=False)
    say(f"Replay error of the capture: {run.summary['capture']['replay_error']:.1e}. Run folder: {run.path}")


def _forensics(specs: Sequence[ModelSpec], choice: Choice, device: str, out: Path, json: bool) -> None:
    from attnaudit.claims.forensics import investigate
    from attnaudit.cli import work
    from attnaudit.evidence.plan import file_name
    from attnaudit.report.figures import write_rows
    from attnaudit.report.terminal import forensics_table

    prepared = _shard(specs, choice)
    work.make_folder(out)
    for spec in specs:
        with progress_bar("96 conventions") as progress:
            progress(0, 1)
            findings = investigate(_captured(spec, prepared, device).layers)
            progress(1, 1)
        table = out / f"forensics-{file_name(spec.label)}.csv"
        write_rows([finding.record() for finding in findings], table)
        if json:
            print_json([finding.record() for finding in findings])
        else:
            data_console().print(forensics_table(spec.label, findings))
        say(f"Wrote {table}.")


def _figure(item: Item, specs: Sequence[ModelSpec], choice: Choice, device: str, out: Path, json: bool) -> None:
    from attnaudit.claims.figures import GAMMA_BLOCK, gamma_records, norm_records
    from attnaudit.cli import work
    from attnaudit.report.figures import gamma_figure, norm_figure, write_csv

    if item is Item.FIGURE3 and len(specs) > 1:
        raise UsageError(f"Figure 3 shows one model, but {len(specs)} are given or found: name one.")
    shard = _shard(specs, choice)
    work.make_folder(out)
    picture, table = out / f"{item.value}.svg", out / f"{item.value}.csv"
    norms, gammas = [], []
    with progress_bar(item.value) as progress:
        for done, spec in enumerate(specs):
            progress(done, len(specs))
            layers = _captured(spec, shard, device).layers
            if item is Item.FIGURE3:
                if len(layers) <= GAMMA_BLOCK:
                    raise UsageError(
                        f"Figure 3 looks at block {GAMMA_BLOCK}, but {spec.name} has {len(layers)} attention layers."
                    )
                gammas += gamma_records(spec.label, layers[GAMMA_BLOCK], choice.seed)
            else:
                norms += norm_records(spec.label, layers, language=item is Item.FIGURE5)
        progress(len(specs), len(specs))
    if norms:
        norm_figure(norms, picture)
    else:
        gamma_figure(gammas, picture)
    records = norms or gammas
    write_csv(records, table)
    if json:
        print_json([asdict(record) for record in records])
    say(f"Wrote {picture} and {table}.")


def _shard(specs: Sequence[ModelSpec], choice: Choice) -> Shard:
    """All inputs of a figure as one batch."""
    from attnaudit.cli import work
    from attnaudit.protocol import Protocol
    from attnaudit.sources.images import ImageShard
    from attnaudit.sources.texts import TextShard

    shards, _ = work.inputs(specs, choice, Protocol.PAPER)
    if all(isinstance(shard, ImageShard) for shard in shards):
        return ImageShard(tuple(i for shard in shards if isinstance(shard, ImageShard) for i in shard.items))
    return TextShard(tuple(i for shard in shards if isinstance(shard, TextShard) for i in shard.items))


def _captured(spec: ModelSpec, shard: Shard, device: str) -> Capture:
    from attnaudit.errors import InputError
    from attnaudit.evidence.unit import capture_prepared
    from attnaudit.protocol import Protocol
    from attnaudit.sources.model import load_model

    model = load_model(spec)
    prepared = shard.prepare(model, Protocol.PAPER)
    for name, reason in prepared.skipped:
        say(f"skipped input {name}: {reason}")
    if prepared.inputs is None:
        raise InputError("None of the pictures could be read.")
    return capture_prepared(model.module, prepared, device, model.label)
