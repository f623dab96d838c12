"""Which models and how many inputs the reproduction study has, and which of them are available here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnaudit.audit.unit import capture_prepared
from attnaudit.capture import Heads
from attnaudit.errors import InputError, ModelError, WeightsError
from attnaudit.papers.published_tables import SAME_MODEL, TABLE4, VISION_MODELS
from attnaudit.papers.tables import TABLES
from attnaudit.protocol import Protocol
from attnaudit.sources.images import ImageShard
from attnaudit.sources.inputs import Shard
from attnaudit.sources.model import ModelSpec, load_model, parse_model
from attnaudit.sources.text_shards import TextShard

#: Images or lines of text behind each table and figure; those of the forensics are our choice.
STUDY_INPUTS: Mapping[str, int] = {
    **{name: table.inputs for name, table in TABLES.items()},
    "figure2": 1,
    "figure3": 1,
    "figure5": 2,
    "forensics": 5,
}
#: Tables and figures of language encoders; the others are of vision models.
LANGUAGE = ("table4", "figure5")
#: Figures of training runs, not of models.
OF_TRAINING = ("figure1", "figure4")


@dataclass(frozen=True)
class StudyModels:
    """Models of the study: those that can be loaded here, and the names of those that lack their weights."""

    available: tuple[ModelSpec, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class CapturedBatch:
    """Every layer of a model on one batch, and the inputs that could not be read, with reasons."""

    layers: tuple[Heads, ...]
    skipped: tuple[tuple[str, str], ...]


def study_models(*, language: bool, random_weights: bool, seed: int, download: bool) -> StudyModels:
    """All language encoders or all vision models of the study.

    Raises:
        WeightsError: none of them is available.
    """
    ours = {theirs: name for name, theirs in SAME_MODEL.items()}
    names = [ours.get(name, f"hf:{name}") for name in TABLE4] if language else list(VISION_MODELS)
    found: list[ModelSpec] = []
    missing: list[str] = []
    for name in names:
        try:
            found.append(parse_model(name, random_weights=random_weights, seed=seed, download=download))
        except (WeightsError, ModelError):
            missing.append(name)
    if not found:
        raise WeightsError(
            f"None of the {len(names)} models of the study has local weights: name one with --weights FILE, or use "
            "--download."
        )
    return StudyModels(tuple(found), tuple(missing))


def one_batch(shards: Sequence[Shard]) -> Shard:
    """All inputs of several shards of one kind as a single one."""
    if all(isinstance(shard, ImageShard) for shard in shards):
        return ImageShard(tuple(i for shard in shards if isinstance(shard, ImageShard) for i in shard.items))
    return TextShard(tuple(i for shard in shards if isinstance(shard, TextShard) for i in shard.items))


def capture_batch(spec: ModelSpec, batch: Shard, device: str) -> CapturedBatch:
    """Every head of a model on one batch, prepared as the study does.

    Raises:
        InputError: none of the inputs can be read.
    """
    model = load_model(spec)
    prepared = batch.prepare(model, Protocol.PAPER)
    if prepared.inputs is None:
        name, reason = prepared.skipped[0]
        raise InputError(f"None of the {len(prepared.skipped)} inputs can be read; the first: {name} {reason}.")
    captured = capture_prepared(model.module, prepared, device, model.label)
    return CapturedBatch(tuple(captured.layers), tuple(prepared.skipped))
