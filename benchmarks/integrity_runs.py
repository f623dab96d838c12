"""Small runs of every kind, as commands, for the benchmarks of integrity: what to run, and what it must end with."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.audit import open_audit
from attnaudit.records.card import ImageCard
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.evaluation import EvaluationFile, EvaluationSummary
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.training import open_training
from attnaudit.robustness.table import SCHEMA
from attnaudit.sources.cards import read_card

RECIPE = """
name: tiny
model: {image_size: 8, patch_size: 4, width: 24, depth: 2, heads: 2}
epochs: 3
batch: 8
precision: fp32
average: 0.9
monitor: {images: 4, scores: 1}
"""
#: Numbers that depend on the clock.
TIMES = ("seconds", "images_per_second")


@dataclass(frozen=True)
class SmallRun:
    """A command without its run folder, and the kind of folder that it writes."""

    name: str
    kind: RunKind
    arguments: tuple[str, ...]

    def command(self, out: Path) -> list[str]:
        """The whole command."""
        return [sys.executable, "-m", "attnaudit", *self.arguments, "--out", str(out)]


def prepare(place: Path) -> dict[str, SmallRun]:
    """Write the inputs into a folder, once, train a model for the evaluation, and name the runs."""
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "tiny.yaml").exists():
        _write_pictures(place / "images", 12)
        (place / "data").mkdir(exist_ok=True)
        for seed, name in enumerate(("train", "test")):
            _write_labelled(place / "data" / f"{name}.parquet", 40, seed)
        (place / "tiny.yaml").write_text(RECIPE)
    audit = ("audit", "test_vit", "--random-weights", "--images", str(place / "images"), "--limit", "12")
    audit += ("--references", "gaussian,planted", "--repeats", "1", "--claims", "kpca-values")
    train = ("train", str(place / "tiny.yaml"), "--data", str(place / "data"), "--device", "cpu")
    robust = ("robust", str(place / "trained"), "--parquet", str(place / "data" / "test.parquet"), "--device", "cpu")
    runs = {
        "serial": SmallRun("serial", RunKind.AUDIT, (*audit, "--workers", "1")),
        "workers": SmallRun("workers", RunKind.AUDIT, (*audit, "--workers", "2")),
        "train": SmallRun("train", RunKind.TRAINING, train),
        "robust": SmallRun(
            "robust", RunKind.ROBUSTNESS, (*robust, "--attacks", "fgsm,pgd:20", "--eps", "1/255,4/255", "--batch", "4")
        ),
    }
    if not (place / "trained" / "summary.json").exists():
        finish(runs["train"], place / "trained")
    return runs


def finish(run: SmallRun, out: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(run.command(out), capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise SystemExit(f"{run.name} ended with {done.returncode}:\n{done.stderr}")
    return done


def environment() -> dict[str, str]:
    """Without the network, and one thread per process."""
    return os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def content(kind: RunKind, out: Path) -> str:
    """A name for all that can be read from a run folder: files of JSON, and rows of the parts; times are left out."""
    return digest(json_file.plain(_read(kind, out)))


def _read(kind: RunKind, out: Path) -> list[Any]:
    folder = RunFolder(out)
    if kind is RunKind.AUDIT:
        run = open_audit(out)
        notes = folder.parts.notes(run.settings.parts)
        return [json_file.plain(own) for own in (run.settings, run.summary, *notes)] + [_rows(run.evidence)]
    if kind is RunKind.TRAINING:
        training = open_training(out)
        history = [_timeless(json_file.plain(epoch)) for epoch in training.history]
        card = read_card(out)
        assert isinstance(card, ImageCard)
        facts = _timeless(json_file.plain(card.facts))
        summary = json_file.read(dict[str, dict[str, Any]], out / "summary.json", "the summary of a training")
        plain = [json_file.plain(training.settings), history, json_file.plain(card.architecture), facts]
        notes = [json_file.plain(own) for own in folder.parts.notes(training.settings.parts)]
        return [*plain, _timeless(summary["training"]), *notes, _rows(training.rows.table())]
    open_evaluation(out)
    settings = folder.settings(EvaluationFile, RunKind.ROBUSTNESS)
    summary = folder.summary(EvaluationSummary, "the summary of an evaluation")
    accuracies = [_timeless(json_file.plain(own)) for own in summary.accuracies]
    sizes = dict.fromkeys(settings.parts, 4)
    tables = [_rows(own.drop_columns("seconds")) for own in folder.parts.tables(sizes, SCHEMA).values()]
    plain = [json_file.plain(settings), accuracies, json_file.plain(summary.scores), json_file.plain(summary.checks)]
    return [*plain, *tables]


def _rows(table: pa.Table) -> str:
    return digest([str(row) for row in table.to_pylist()])


def _timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in TIMES}


def _write_pictures(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    generator = np.random.default_rng(0)
    for place in range(count):
        pixels = generator.integers(0, 256, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{place}.png")


def _write_labelled(file: Path, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    images = []
    for place in range(count):
        pixels = generator.integers(0, 100, (8, 8, 3), dtype=np.uint8)
        pixels[4 * (place % 2) : 4 * (place % 2) + 4] += 120
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format="PNG")
        images.append({"bytes": buffer.getvalue(), "path": None})
    pq.write_table(pa.table({"img": images, "label": [place % 2 for place in range(count)]}), file)
