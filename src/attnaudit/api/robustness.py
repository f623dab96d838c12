"""How networks that classify or segment hold under corruptions, attacks and noise."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attnaudit import defaults
from attnaudit.display import counted
from attnaudit.errors import UsageError, unknown
from attnaudit.numerics.devices import device_name
from attnaudit.protocol import Protocol
from attnaudit.records.card import SentenceCard
from attnaudit.records.engine import Progress
from attnaudit.records.ranges import check_seed, check_whole
from attnaudit.records.run_folder import RunFolder
from attnaudit.report.progress import shown_progress
from attnaudit.report.robustness_files import write_evaluation_files
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples, Robustness, evaluate
from attnaudit.robustness.corrupted_sets import write_corrupted_sets
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.planning import (
    Corruptions,
    check_corrupted,
    check_segmentation,
    corrupting_conditions,
    evaluation_conditions,
    find_examples,
    for_segmentation,
    noise_plan,
)
from attnaudit.robustness.sentences import SentenceExamples
from attnaudit.sources.class_outputs import outputs_of
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.model import load_model, parse_model
from attnaudit.sources.selection import select_specs
from attnaudit.sources.sentences import read_sentences

_log = logging.getLogger(__name__)
#: How a command does less.
_LESS = "--limit N draws fewer"
#: Images or sentences at a time, by device.
_BATCH = {"cpu": 64, "cuda": 256}
#: Of matrix products.
_PRECISIONS = ("fp32", "tf32", "bf16")


def robust(
    models: str | Sequence[str],
    images: str | Path | None = None,
    *,
    tsv: str | Path | None = None,
    weights: str | Path | None = None,
    random_weights: bool = False,
    download: bool = False,
    attacks: Sequence[str] | None = None,
    eps: Sequence[float | str] | None = None,
    corruptions: Corruptions = (),
    severities: Sequence[int] = defaults.SEVERITIES,
    corrupted: str | Path | None = None,
    baseline: str | None = None,
    twin: str | None = None,
    outliers: str | Path | None = None,
    mask: bool = False,
    noises: Sequence[str] | Literal["all"] | None = None,
    rates: Sequence[float] | None = None,
    checks: bool = True,
    limit: int | None = None,
    seed: int = defaults.SEED,
    protocol: Protocol | str = Protocol.EXACT,
    precision: str = defaults.PRECISION,
    batch: int | None = None,
    device: str = defaults.DEVICE,
    compiled: bool = False,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Robustness:
    """Measure accuracy, or mIoU, under corruptions, attacks or noise, with intervals, and check for gradient masking.

    Args:
        models: names of models: `"vit-small-cifar"`, `"timm:NAME"`, or a folder that `train` wrote. They all classify
            images, or all segment, or all classify sentences.
        images: a folder with a folder of images per class, or a Parquet file with columns img and label; for networks
            that segment, a folder in ADE20K's layout, or a Parquet file with columns image and mask. By default what
            the data folder has for the model's classes.
        tsv: for models that classify sentences, tab-separated text with columns sentence and label; then only noises,
            rates, limit and what follows apply.
        weights: a local weights file, of one model.
        random_weights: evaluate untrained networks, initialised from `seed`.
        download: allow the network for weights.
        attacks: names, see `attnaudit ls attacks`; `"pgd:50"` runs 50 iterations, `"autoattack@1/255"` at that ε alone.
            By default some; none for networks that segment, which are shown clean and corrupted pictures only.
        eps: budgets of the attacks, in pixels between 0 and 1: numbers, or texts such as `"4/255"`; 1/255 and
            4/255 if None.
        corruptions: names, see `attnaudit ls corruptions`, or `"all"`.
        severities: of the corruptions, 1 to 5.
        corrupted: a folder of corrupted images, ImageNet-C or one that `corrupt` wrote; made now if None.
        baseline: the model whose errors divide in the mean corruption error; AlexNet, on ImageNet, if None.
        twin: a model, such as the softmax twin, whose adversarial images are tried.
        outliers: class folders of images of no known class, such as ImageNet-O.
        mask: let only the classes of the images count, as for ImageNet-A, -R and -O.
        noises: of sentences: names, see `attnaudit ls noises`, or `"all"`; all if None.
        rates: shares of the words of a sentence that noise hits, above 0 and up to 1; 0.1 and 0.3 if None.
        checks: look for gradient masking.
        limit: how many images or sentences to draw; all if None.
        seed: of every random choice.
        protocol: `exact` (ε in pixels, clipped, true labels) or `paper` (as Teo & Nguyen's code).
        precision: of the model's products: `fp32`, `tf32` or `bf16`.
        batch: images or sentences at a time; 64, on a GPU 256, if None. A batch with more room than images lets
            AutoAttack and Square make several tries for an image at a time, with the same result.
        device: `auto`, `cpu` or `cuda`.
        compiled: compile the models with torch.compile, which pays for long attacks on RPC-Attention on a GPU; of
            images only.
        out: the run folder, by default in `attnaudit-runs`. Repeating the call resumes; further attacks, ε or models
            are added.
        progress: a function that is told of every finished batch; True for a bar, False for none.
    """
    check_whole(1, limit=limit, batch=batch)
    check_seed(seed)
    if precision not in _PRECISIONS:
        raise unknown("precision", precision, _PRECISIONS)
    if out is not None:
        RunFolder(Path(out)).check()
    names = [models] if isinstance(models, str) else list(models)
    if tsv is not None:
        given = {
            "--images and --parquet": images, "--attacks": attacks, "--eps": eps, "--corruptions": corruptions,
            "--corrupted": corrupted, "--baseline": baseline, "--twin": twin, "--outliers": outliers, "--mask": mask,
            "--compile": compiled,
        }  # fmt: skip
        for name, value in given.items():
            if value:
                verb = "are" if " and " in name else "is"
                raise UsageError(f"{name} {verb} for images: with --tsv use --noises and --rates.")
    elif noises is not None or rates is not None:
        named = "rates" if noises is None else "noises"
        raise UsageError(f"--{named} is for sentences: give --tsv FILE, or leave it out.")
    if baseline is not None and baseline not in names:
        raise UsageError(f"--baseline must be one of the models to evaluate ({', '.join(names)}), got {baseline}.")
    if baseline is not None and not corruptions:
        raise UsageError(f"--baseline {baseline} needs corruptions: name some, or use --corruptions all.")
    ready = None if corrupted is None else Path(corrupted)
    check_corrupted(ready, corruptions)
    chosen = Protocol(protocol)
    of_images = evaluation_conditions(
        chosen,
        attacks=defaults.ATTACKS if attacks is None else attacks,
        eps=defaults.EPSILONS if eps is None else eps,
        corruptions=corruptions,
        severities=severities,
        transfer=twin is not None,
        outliers=outliers is not None,
        checks=checks,
    )
    specs = select_specs(names, weights=weights, random_weights=random_weights, seed=seed, download=download)
    loaded = tuple(load_model(spec) for spec in specs)
    place = device_name(device)
    examples: Examples | SentenceExamples
    if tsv is not None:
        conditions = noise_plan("all" if noises is None else noises, defaults.RATES if rates is None else rates)
        examples = SentenceExamples.drawn(read_sentences(Path(tsv)), limit, seed)
    elif sentences := next((model.label for model in loaded if isinstance(model.card, SentenceCard)), None):
        raise UsageError(f"{sentences} classifies sentences: give --tsv FILE, with columns sentence and label.")
    else:
        if segments := PixelModel(loaded[0]).segments:
            check_segmentation(attacks=attacks, eps=eps, twin=twin, outliers=outliers, mask=mask, baseline=baseline)
        conditions = for_segmentation(of_images) if segments else of_images
        examples = find_examples(
            loaded[0],
            None if images is None else Path(images),
            corrupted=ready,
            outliers=None if outliers is None else Path(outliers),
            limit=limit,
            seed=seed,
        )
    plan = EvaluationPlan(
        loaded,
        examples,
        conditions,
        EvaluationSettings(seed, chosen, precision, mask, place, batch or _BATCH[place], compiled),
        None if twin is None else load_model(parse_model(twin, seed=seed, download=download)),
        checks,
    )
    folder = Path(out) if out is not None else Path(defaults.RUNS) / plan.name
    count = counted(len(plan.examples.indices), "image" if tsv is None else "sentence")
    about = f"{count} of {plan.examples.data.path.name}, protocol {chosen.value}"
    _log.info("Evaluating %s on %s, on %s, in %s.", ", ".join(model.label for model in loaded), about, place, folder)
    divisor = None if baseline is None else loaded[names.index(baseline)].label
    with shown_progress(progress, "evaluating", _LESS) as told:
        evaluation = evaluate(plan, folder, baseline=divisor, progress=told)
    *files, page = write_evaluation_files(folder, evaluation.summary, f"{about}, seed {seed}, {precision}.")
    _log.info("Wrote %s. Report, to open in a browser: %s", ", ".join(map(str, files)), page)
    return evaluation


def corrupt(
    model: str,
    images: str | Path | None = None,
    *,
    weights: str | Path | None = None,
    random_weights: bool = False,
    corruptions: Corruptions = "all",
    severities: Sequence[int] = defaults.SEVERITIES,
    limit: int | None = None,
    seed: int = defaults.SEED,
    workers: int = 1,
    out: str | Path = defaults.CORRUPTED,
    progress: Progress | bool = True,
) -> Path:
    """Write corrupted images once, for `robust(corrupted=…)` on any machine; says in which folder.

    The same seed gives the same images, whatever the number of workers; existing files are left as they are.

    Args:
        model: a name; images are cut to what this model sees.
        images: as for `robust`; by default what the data folder has for the model's classes.
        weights: a local weights file.
        random_weights: take the network untrained.
        corruptions: names, see `attnaudit ls corruptions`, or `"all"`.
        severities: 1 to 5.
        limit: how many images to draw; all if None.
        seed: of every random choice.
        workers: processes.
        out: the folder: `clean.parquet`, and `CORRUPTION/SEVERITY.parquet`.
        progress: a function that is told of every finished file; True for a bar, False for none.
    """
    check_whole(1, limit=limit, workers=workers)
    check_seed(seed)
    conditions = corrupting_conditions(corruptions, severities)
    if not conditions:
        raise UsageError("--corruptions none leaves nothing to write: name some, or use --corruptions all.")
    (spec,) = select_specs(model, weights=weights, random_weights=random_weights, seed=seed)
    loaded = load_model(spec)
    subject = PixelModel(loaded)
    examples = find_examples(loaded, None if images is None else Path(images), limit=limit, seed=seed)
    if isinstance(examples.data, LabelledImages):
        outputs_of(examples.data, subject.outputs, subject.label, examples.classes, subject.class_names)
    count = counted(len(examples.indices), "image")
    _log.info("Applying %s to %s of %s.", counted(len(conditions), "corruption"), count, examples.data.path)
    with shown_progress(progress, "corrupting", _LESS) as told:
        write_corrupted_sets(subject, examples, conditions, Path(out), seed=seed, workers=workers, progress=told)
    return Path(out)
