"""`attnaudit robust`: accuracy under corruptions and attacks, and whether the attacks can be trusted."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import labelled, options
from attnaudit.cli.console import data_console, detailed_progress_bar, print_json, say
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol

if TYPE_CHECKING:
    from attnaudit.records.evaluation import Condition
    from attnaudit.robustness import Examples, Robustness
    from attnaudit.sources.model import LoadedModel


class Precision(StrEnum):
    """The precision of matrix products."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"


#: Batch size by device.
_BATCH = {"cpu": 64, "cuda": 256}


def robust(
    models: Annotated[
        list[str],
        typer.Argument(help="Vision classifiers: vit-small-cifar, timm:NAME, or a folder from attnaudit train."),
    ],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: labelled.ClassFolders = None,
    parquet: labelled.Parquet = None,
    attacks: Annotated[
        str, typer.Option(help="Attacks (attnaudit ls attacks): comma-separated or `none`; pgd:50 runs 50 iterations.")
    ] = "noise,fgsm,pgd",
    eps: Annotated[str, typer.Option(help="Attack budgets in pixel values, between 0 and 1.")] = "1/255,4/255",
    corruptions: labelled.Corruptions = "none",
    severities: labelled.Severities = "1,2,3,4,5",
    corrupted: Annotated[
        Path | None,
        typer.Option(
            help="Corrupted images: ImageNet-C, or from attnaudit corrupt. Default: generated now.", show_default=False
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="The model whose errors normalise mCE. Default: AlexNet, on ImageNet.", show_default=False),
    ] = None,
    twin: Annotated[
        str | None,
        typer.Option(help="A model, such as a softmax twin, whose adversarial images are tried.", show_default=False),
    ] = None,
    outliers: Annotated[
        Path | None,
        typer.Option(help="Class folders of images of unknown classes, such as ImageNet-O: AUPR.", show_default=False),
    ] = None,
    mask: Annotated[
        bool, typer.Option("--mask", help="Use only outputs for the classes of the images, as for ImageNet-A, -R, -O.")
    ] = False,
    checks: Annotated[bool, typer.Option(help="Check for gradient masking.")] = True,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of images to draw. Default: all.")] = None,
    seed: options.Seed = 0,
    protocol: Annotated[
        Protocol, typer.Option(help="exact: ε in pixels, clipped, true labels; paper: as in Teo & Nguyen's code.")
    ] = Protocol.EXACT,
    precision: Annotated[
        Precision, typer.Option(help="Precision of matrix products; tf32 is for GPUs, on a CPU it is fp32.")
    ] = Precision.FP32,
    batch: Annotated[int | None, typer.Option(min=1, help="Batch size. Default: 64, on a GPU 256.")] = None,
    device: options.DeviceOption = Device.AUTO,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default: attnaudit-runs/robust-<model>-….", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure the accuracy of MODELS under corruptions and attacks, with intervals, and check for gradient masking.

    Repeating the command resumes it. With the same --out and additional attacks, ε or models, it computes only what is
    new. Tables and page show what the last command named.

    Examples:
        attnaudit robust vit-small-cifar --limit 64

        attnaudit robust runs/rpc runs/softmax --twin runs/softmax --attacks pgd,autoattack --eps 1/255,4/255

        attnaudit robust vit-small-cifar --attacks none --corruptions all --baseline vit-small-cifar

        attnaudit robust timm:deit_tiny_patch16_224 --images imagenet/val --corrupted imagenet-c --corruptions all

        attnaudit robust timm:deit_tiny_patch16_224 --images imagenet-a --mask --attacks none
    """
    from attnaudit.cli import work
    from attnaudit.errors import InputError, UsageError
    from attnaudit.report.robustness import robustness_report
    from attnaudit.robustness import EvaluationPlan, EvaluationSettings, evaluate
    from attnaudit.robustness.conditions import attack_conditions, corruption_conditions, epsilon, transfer_conditions
    from attnaudit.sources.model import load_model

    if baseline is not None and baseline not in models:
        raise UsageError(f"--baseline must be one of the models to evaluate ({', '.join(models)}), got {baseline}.")
    kinds = labelled.corruption_names(corruptions)
    if baseline is not None and not kinds:
        raise UsageError(f"--baseline {baseline} needs corruptions: name some, or use --corruptions all.")
    if corrupted is not None and not corrupted.is_dir():
        raise InputError(f"--corrupted must be a folder, ImageNet-C or from attnaudit corrupt, got {corrupted}.")
    if corrupted is not None and not kinds:
        raise UsageError(f"--corrupted {corrupted} needs corruptions: name some, or use --corruptions all.")
    budgets = [epsilon(text) for text in options.listed(eps, "--eps")]
    conditions = _conditions(
        corruption_conditions(kinds, options.whole_numbers(severities, "--severities")),
        attack_conditions(options.names(attacks, "--attacks"), budgets, protocol),
        transfer_conditions(budgets, protocol) if twin else [],
        checks=checks and protocol is Protocol.EXACT,
        outliers=outliers is not None,
    )
    specs = work.specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    loaded = tuple(load_model(spec) for spec in specs)
    twins = work.specs([twin] if twin else [], weights=None, random_weights=False, seed=seed, download=download)
    place = work.device_name(device)
    plan = EvaluationPlan(
        loaded,
        _examples(loaded[0], images, parquet, corrupted, outliers, limit, seed),
        conditions,
        EvaluationSettings(seed, protocol, precision.value, mask, place, batch or _BATCH[place]),
        load_model(twins[0]) if twins else None,
        checks,
    )
    folder = out or work.RUNS / plan.name
    about = f"{len(plan.examples.places):,} images of {plan.examples.data.path.name}, protocol {protocol.value}"
    say(f"Evaluating {', '.join(model.label for model in loaded)} on {about}, on {place}, in {folder}.")
    divisor = None if baseline is None else loaded[models.index(baseline)].label
    with detailed_progress_bar("evaluating") as (progress, _):
        done = evaluate(plan, folder, baseline=divisor, progress=progress)
    if json:
        from attnaudit.records import json_file

        print_json(json_file.plain(done.summary))
    else:
        data_console().print(robustness_report(done.summary))
    _deliver(done, f"{about}, seed {seed}, {precision.value}.")


def _conditions(
    corruptions: list[Condition], attacks: list[Condition], transfers: list[Condition], *, checks: bool, outliers: bool
) -> tuple[Condition, ...]:
    """All conditions that the options name; gradients are checked if an attack uses them."""
    from attnaudit.robustness.conditions import CLEAN, EVERYTHING, GRADIENT, OUTLIERS

    looks = (EVERYTHING, GRADIENT) if checks and any(attack.name == "pgd" for attack in attacks) else ()
    return (CLEAN, *corruptions, *attacks, *transfers, *looks, *((OUTLIERS,) if outliers else ()))


def _examples(
    model: LoadedModel,
    images: Path | None,
    parquet: Path | None,
    corrupted: Path | None,
    outliers: Path | None,
    limit: int | None,
    seed: int,
) -> Examples:
    """The images; a folder from attnaudit corrupt also has the clean ones."""
    from attnaudit.robustness import Examples
    from attnaudit.robustness.corrupted_sets import CLEAN_FILE, classes_of
    from attnaudit.robustness.pixels import PixelModel
    from attnaudit.sources.labelled import read_labelled

    ours = corrupted if images is None and parquet is None and corrupted and (corrupted / CLEAN_FILE).exists() else None
    classes = None if ours is None else classes_of(ours)
    source = parquet if ours is None else ours / CLEAN_FILE
    data = labelled.labelled(images, source, PixelModel(model).outputs)
    strangers = None if outliers is None else read_labelled(outliers)
    cut = ours is not None
    return Examples.drawn(data, limit, seed, ready=corrupted, cut=cut, outliers=strangers, classes=classes)


def _deliver(done: Robustness, title: str) -> None:
    """Write CSV, curves and page next to the evidence."""
    from attnaudit.errors import MissingExtraError
    from attnaudit.report.drawing import for_screen_and_print
    from attnaudit.report.figures import write_rows
    from attnaudit.report.page import FILE
    from attnaudit.report.page.robustness import write_robustness_page
    from attnaudit.report.robustness import accuracy_rows
    from attnaudit.report.robustness_figures import accuracy_curves

    table, images = done.path / "accuracy.csv", for_screen_and_print(done.path, "curves")
    write_rows(accuracy_rows(done.summary), table)
    drawn = False
    with suppress(MissingExtraError):
        drawn = accuracy_curves(done.summary, images)
    page = write_robustness_page(done.summary, title, images[0] if drawn else None, done.path / FILE)
    say(f"Wrote {', '.join(map(str, (table, *(images if drawn else ()))))}. Report, to open in a browser: {page}")
