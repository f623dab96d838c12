"""`attnaudit robust`: accuracy under corruptions, attacks or noise, and whether the attacks can be trusted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol
from attnaudit.report.console import data_console, print_json


class Precision(StrEnum):
    """The precision of matrix products."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"


def robust(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Models that classify images or sentences, or segment: vit-small-cifar, timm:NAME, or a folder from "
            "attnaudit train."
        ),
    ],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.ClassFolders = None,
    parquet: options.Parquet = None,
    tsv: Annotated[
        Path | None,
        typer.Option(
            help="Sentences for models that classify them: tab-separated; columns sentence, label.", show_default=False
        ),
    ] = None,
    noises: Annotated[
        str | None,
        typer.Option(
            help="Noise in sentences (attnaudit ls noises): comma-separated, `all` or `none`.", show_default="all"
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(help="Shares of the words that noise hits.", show_default=options.joined(defaults.RATES)),
    ] = None,
    attacks: Annotated[
        str | None,
        typer.Option(
            help="Attacks (attnaudit ls attacks): comma-separated or `none`; pgd:50 runs 50 iterations, pgd@1/255 at "
            "that ε alone.",
            show_default=f"{options.joined(defaults.ATTACKS)}; none for segmentation and sentences",
        ),
    ] = None,
    eps: Annotated[
        str | None,
        typer.Option(
            help="Attack budgets in pixel values, between 0 and 1.", show_default=options.joined(defaults.EPSILONS)
        ),
    ] = None,
    corruptions: options.Corruptions = "none",
    severities: options.Severities = options.joined(defaults.SEVERITIES),
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
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of images or sentences to draw. Default: all.")
    ] = None,
    seed: options.Seed = defaults.SEED,
    protocol: Annotated[
        Protocol, typer.Option(help="exact: ε in pixels, clipped, true labels; paper: as in Teo & Nguyen's code.")
    ] = Protocol.EXACT,
    precision: Annotated[
        Precision, typer.Option(help="Precision of matrix products; tf32 is for GPUs, on a CPU it is fp32.")
    ] = Precision(defaults.PRECISION),
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Batch size; AutoAttack is faster with one above --limit. Default: 64, on a GPU 256."),
    ] = None,
    device: options.DeviceOption = Device(defaults.DEVICE),
    compiled: Annotated[
        bool,
        typer.Option("--compile", help="Compile the models; pays for long attacks on RPC-Attention, on a GPU."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default: `robust-<model>-…` in attnaudit-runs.", show_default=False)
    ] = None,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Measure the accuracy of MODELS under corruptions and attacks, or noise in sentences, with intervals.

    Where gradients were used to attack, it also checks for gradient masking.

    For networks that segment, it measures mIoU, mean accuracy and pixel accuracy, clean and under corruptions.

    Repeating the command resumes it. With the same --out and additional attacks, ε or models, it computes only what is
    new. The tables and the page show only what the last command asked for.

    Examples:
        attnaudit robust vit-small-cifar --limit 64

        attnaudit robust runs/rpc runs/softmax --twin runs/softmax --attacks pgd,autoattack --eps 1/255,4/255

        attnaudit robust vit-small-cifar --attacks none --corruptions all --baseline vit-small-cifar

        attnaudit robust timm:deit_tiny_patch16_224 --images imagenet/val --corrupted imagenet-c --corruptions all

        attnaudit robust timm:deit_tiny_patch16_224 --images imagenet-a --mask --attacks none

        attnaudit robust runs/segment-camvid-0 --parquet camvid/test.parquet --corruptions all --severities 3

        attnaudit robust runs/sst2-rpc runs/sst2-softmax --tsv sst2/test.tsv --rates 0.1,0.2,0.4
    """
    from attnaudit.api.robustness import robust as evaluated
    from attnaudit.records import json_file
    from attnaudit.report.robustness import robustness_report

    evaluation = evaluated(
        models,
        options.one_of(images=images, parquet=parquet),
        weights=weights,
        random_weights=random_weights,
        download=download,
        tsv=tsv,
        noises=None if noises is None else options.names_or_all(noises, "--noises"),
        rates=None if rates is None else options.numbers(rates, "--rates"),
        attacks=None if attacks is None else options.names(attacks, "--attacks"),
        eps=None if eps is None else options.listed(eps, "--eps"),
        corruptions=options.names_or_all(corruptions, "--corruptions"),
        severities=options.whole_numbers(severities, "--severities"),
        corrupted=corrupted,
        baseline=baseline,
        twin=twin,
        outliers=outliers,
        mask=mask,
        checks=checks,
        limit=limit,
        seed=seed,
        protocol=protocol,
        precision=precision.value,
        batch=batch,
        device=device.value,
        compiled=compiled,
        out=out,
    )
    if json:
        print_json(json_file.plain(evaluation.summary))
    else:
        data_console(wide=wide).print(robustness_report(evaluation.summary, wide=wide))
