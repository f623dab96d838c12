"""An evaluation from start to finish: skip the batches that are done, compute the rest, summarise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError, RunFolderError, first_line
from attnaudit.numerics.precision import short_products
from attnaudit.numerics.randomness import derived_seed
from attnaudit.records import json_file
from attnaudit.records.card import ImageCard, TextCard
from attnaudit.records.evaluations import Kind
from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder, encoded
from attnaudit.records.versions import installed_versions
from attnaudit.robustness.conditions import CLEAN, GRADIENT, OUTLIERS, TRANSFER, Condition
from attnaudit.robustness.examples import seen
from attnaudit.robustness.outcome import Outcome, along_gradient, attacked, plain
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.plan import EvaluationPlan, EvaluationUnit
from attnaudit.robustness.summary import Summary, summarise
from attnaudit.robustness.table import SCHEMA, Results, rows

#: Told of every finished batch: (batches done, batches in all, a few words).
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Robustness:
    """A finished evaluation: its folder, its rows, and what they amount to."""

    path: Path
    results: Results = field(repr=False)
    summary: Summary


def evaluate(
    plan: EvaluationPlan,
    out: Path,
    *,
    baseline: str | None = None,
    progress: Progress = lambda done, total, words: None,
) -> Robustness:
    """Carry out a plan in a run folder. Repeated, it finishes what is missing and nothing else.

    Args:
        plan: models, images, conditions.
        out: the run folder: `run.json`, `evidence/part-*.parquet`, `summary.json`.
        baseline: label of the model whose errors divide those of the others in the mean corruption error.
        progress: told of every batch.
    """
    folder = RunFolder(out)
    units = plan.units
    new = folder.open(plan.identity, _description(plan, [unit.key for unit in units]))
    try:
        worker = _Worker(plan)
        done = sum(folder.has_part(unit.key) for unit in units)
        with _half_the_threads(), short_products(plan.settings.precision):
            for unit in units:
                progress(done, len(units), f"{unit.classifier.model.label}: {unit.condition.words}")
                if not folder.has_part(unit.key):
                    folder.write_part(unit.key, encoded(worker.rows(unit), Notes((), {}, ())))
                    done += 1
        progress(done, len(units), "done")
    except AttnAuditError:
        if new:
            folder.discard_if_empty()
        raise
    results = _read(folder, units)
    summary = summarise(results, plan, baseline)
    folder.write_summary(summary.as_json())
    return Robustness(out, results, summary)


class _Worker:
    """Computes units one after the other; images of the last condition and the clean ones stay in memory.

    They are kept by what models see of an image, which for models of one kind is the same.
    """

    def __init__(self, plan: EvaluationPlan) -> None:
        self.plan = plan
        self._clean: dict[str, Tensor] = {}
        self._changed: tuple[Condition, dict[str, Tensor]] = (CLEAN, {})

    def rows(self, unit: EvaluationUnit) -> pa.Table:
        """The rows of a batch."""
        model, settings = unit.classifier.model, self.plan.settings
        pixels = self._pixels(model, unit.condition)[unit.batch].to(model.device).float() / 255
        outliers = unit.condition == OUTLIERS
        labels = torch.zeros(len(pixels), dtype=torch.int64) if outliers else unit.classifier.labels[unit.batch]
        begin = time.perf_counter()
        outcome = self._outcome(unit, pixels, labels.to(model.device))
        if model.device.type == "cuda":
            torch.cuda.synchronize(model.device)  # so that the time is the batch's own
        seconds = time.perf_counter() - begin
        places = range(unit.batch.start, unit.batch.stop) if outliers else self.plan.examples.places[unit.batch]
        return rows(model.label, settings.protocol, unit.condition, list(places), labels.tolist(), outcome, seconds)

    def _outcome(self, unit: EvaluationUnit, pixels: Tensor, labels: Tensor) -> Outcome:
        model, condition, settings = unit.classifier.model, unit.condition, self.plan.settings
        parts = (settings.seed, condition.name, str(condition.strength), unit.batch.start)
        generator = torch.Generator(model.device).manual_seed(derived_seed(*parts))
        if condition == GRADIENT:
            return along_gradient(model, pixels, labels, generator)
        if condition.kind not in (Kind.ATTACK, Kind.CHECK):
            return plain(model, pixels, labels)
        twin = self.plan.twin_classifier if condition.name == TRANSFER else None
        maker = model if twin is None else twin.model
        return attacked(model, maker, condition, pixels, labels, settings.protocol, generator)

    def _pixels(self, model: PixelModel, condition: Condition) -> Tensor:
        """What the model sees under a condition, before an attack; made once for all batches."""
        examples = self.plan.examples
        if condition.kind not in (Kind.CORRUPTION, Kind.OUTLIERS):
            return self._clean_pixels(model)
        if self._changed[0] != condition:
            self._changed = condition, {}
        made = self._changed[1]
        if model.sight not in made and condition == OUTLIERS:
            made[model.sight] = seen(model, self.plan.images(condition))
        elif model.sight not in made:
            clean = self._clean_pixels(model)
            made[model.sight] = examples.corrupted(model, clean, condition, self.plan.settings.seed)
        return made[model.sight]

    def _clean_pixels(self, model: PixelModel) -> Tensor:
        if model.sight not in self._clean:
            self._clean[model.sight] = self.plan.examples.clean(model)
        return self._clean[model.sight]


@contextmanager
def _half_the_threads() -> Iterator[None]:
    """On a CPU: threads that wait for a core which another process has make many small steps several times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // 2))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _read(folder: RunFolder, units: Sequence[EvaluationUnit]) -> Results:
    parts: dict[tuple[str, Condition], list[pa.Table]] = {}
    try:
        for unit in units:
            own = pq.read_table(folder.part(unit.key))
            if (own.column_names, len(own)) != (SCHEMA.names, unit.batch.stop - unit.batch.start):
                raise pa.ArrowInvalid(f"{folder.part(unit.key)} holds something else")
            parts.setdefault((unit.classifier.model.label, unit.condition), []).append(own)
    except (OSError, pa.ArrowInvalid) as error:
        raise RunFolderError(
            f"The results in {folder.path} cannot be read ({first_line(error)}): delete the damaged part and "
            "repeat the command."
        ) from error
    return Results({of: pa.concat_tables(tables) for of, tables in parts.items()})


def _described(card: ImageCard | TextCard) -> dict[str, Any]:
    return {"architecture": json_file.plain(card.architecture), "facts": dict(card.facts)}


def _description(plan: EvaluationPlan, keys: list[str]) -> dict[str, Any]:
    return {
        "attnaudit": __version__,
        "versions": installed_versions(),
        "models": [
            {
                "label": model.label,
                "fingerprint": model.fingerprint,
                "weights": model.weights_origin,
                "card": None if model.card is None else _described(model.card),
            }
            for model in plan.models
        ],
        "twin": None if plan.twin is None else plan.twin.label,
        "data": plan.examples.data.place.name,
        "images": len(plan.examples.places),
        "conditions": [condition.identity for condition in plan.conditions],
        "parts": keys,
    }
