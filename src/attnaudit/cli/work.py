"""From the options of a command to a finished run; functions import torch when they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import progress_bar, say
from attnaudit.cli.options import Device
from attnaudit.errors import InputError, UsageError

if TYPE_CHECKING:
    from attnaudit.audit import AuditPlan, Measured
    from attnaudit.protocol import Protocol
    from attnaudit.records.engine import Resources
    from attnaudit.sources.images import ImageItem
    from attnaudit.sources.inputs import Shard
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.texts import TextItem

RUNS = Path("attnaudit-runs")


def specs(
    names: Sequence[str], *, weights: Path | None, random_weights: bool, seed: int, download: bool
) -> list[ModelSpec]:
    """The models that a command names."""
    from attnaudit.sources.model import parse_model

    if weights is not None and len(names) != 1:
        raise UsageError(f"--weights needs exactly one model, got {len(names)}.")
    return [
        parse_model(name, weights=weights, random_weights=random_weights, seed=seed, download=download)
        for name in names
    ]


@dataclass(frozen=True)
class InputChoice:
    """The inputs that the options name."""

    images: Path | None
    text: Path | None
    limit: int
    seed: int
    first: bool = False
    samples_allowed: bool = True
    lines: bool = False


def inputs(
    specs: Sequence[ModelSpec], choice: InputChoice, protocol: Protocol, device: str = "cpu"
) -> tuple[tuple[Shard, ...], str]:
    """The shards for models of one kind on a device, and a description of them."""
    from attnaudit.audit import shard_size
    from attnaudit.sources.images import image_shards
    from attnaudit.sources.texts import text_shards

    readers = {spec.reads_text for spec in specs}
    if len(readers) > 1:
        raise UsageError("Image and text models cannot share their inputs: audit them separately.")
    if readers == {True}:
        if choice.images is not None:
            raise UsageError(f"{specs[0].name} reads text: use --text instead of --images.")
        texts, kind = _texts(choice, protocol)
        return text_shards(texts, protocol, shard_size()), f"{len(texts)} {kind}"
    if choice.text is not None:
        raise UsageError(f"{specs[0].name} reads images: use --images instead of --text.")
    if choice.lines:
        raise UsageError(f"{specs[0].name} reads images: --lines is for text.")
    items = images(choice)
    return image_shards(items, shard_size(device)), f"{len(items)} images"


def images(choice: InputChoice) -> tuple[ImageItem, ...]:
    """The images of the given folder, of the data folder, or samples from an installed package."""
    from attnaudit.sources.data import VARIABLE, data_file
    from attnaudit.sources.images import choose_images, find_images, sample_images

    root = choice.images or data_file("imagenet_val")
    if root is not None:
        paths = find_images(root)
    elif choice.samples_allowed:
        paths = sample_images()
        root = paths[0].parent
        say(f"No --images given and {VARIABLE} is unset: using {len(paths)} photographs from scikit-image.")
    else:
        raise InputError(f"No images were found: give --images DIR, or set {VARIABLE} to the data folder.")
    if choice.first and choice.limit > 0:
        paths = paths[: choice.limit]
    return choose_images(paths, root, choice.limit, choice.seed)


def _texts(choice: InputChoice, protocol: Protocol) -> tuple[tuple[TextItem, ...], str]:
    """Lines or passages of a file, of the data folder's WikiText (`paper`), or of the standard library."""
    from attnaudit.protocol import Protocol
    from attnaudit.sources.data import VARIABLE, data_file
    from attnaudit.sources.texts import passages, read_text, standard_text, study_lines

    paper = protocol is Protocol.PAPER
    place = choice.text or (data_file("wikitext/wiki.test.raw") if paper else None)
    if place is None and not choice.samples_allowed:
        raise InputError(f"No text was found: give --text FILE, or set {VARIABLE} to the data folder.")
    if place is None:
        say("No --text given: using the language reference that comes with Python (pydoc_data.topics).")
    text = standard_text() if place is None else read_text(place)
    choose, kind = (study_lines, "lines") if paper or choice.lines else (passages, "passages")
    drawn = choose(text, choice.limit, choice.seed)
    chosen = choose(text, None, choice.seed)[: choice.limit] if choice.first else drawn
    return chosen, f"{kind} of {place.name if place else 'the Python reference'}"


def device_name(device: Device) -> str:
    """`cpu` or `cuda`; `auto` prefers `cuda`."""
    import torch

    if device is Device.CUDA and not torch.cuda.is_available():
        raise UsageError("--device cuda is not available, as torch finds no CUDA device: use --device cpu.")
    if device is Device.AUTO:
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device.value


def resources(workers: int | None, cluster: str | None, memory: str | None) -> Resources:
    """The workers, cluster and memory that the options name."""
    from attnaudit.records.engine import Resources, default_memory, parse_memory

    return Resources(workers, cluster, default_memory() if memory is None else parse_memory(memory))


def measure_with_progress(plan: AuditPlan, out: Path | None, resources: Resources, label: str) -> Measured:
    """Run an audit in its folder, with a progress bar."""
    from attnaudit.audit import measure

    with progress_bar(label) as progress:
        return measure(
            plan,
            out=out or RUNS / plan.name,
            resources=resources,
            progress=lambda done, total, _: progress(done, total),
        )


def report_losses(run: Measured) -> None:
    """Report what was left out, with reasons and numbers."""
    for name, reason in run.summary["skipped_inputs"]:
        say(f"skipped input {name}: {reason}")
    for layer, reason in run.summary["capture"]["refused_layers"]:
        say(f"refused layer {layer}: {reason}")
    losses: dict[str, tuple[int, int]] = {}
    for references in run.summary["models"].values():
        for statistic in references.get("observed", {}).values():
            for reason, count in statistic["rejected"].items():
                most, measures = losses.get(reason, (0, 0))
                losses[reason] = (max(most, count), measures + 1)
    for reason, (count, measures) in losses.items():
        say(f"rejected: {count:,} heads in {measures} measures, because {reason}")
