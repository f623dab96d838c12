"""What the robustness experiment makes of finished work: one folder per evaluation, verdicts, an archive."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from benchmarks.robustness_jobs import SUMMARY, Job, Share, finished

from attnaudit.errors import UsageError
from attnaudit.records import json_file
from attnaudit.records.evaluation import EvaluationFile, EvaluationSummary
from attnaudit.records.files import make_folder, write_whole
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.report.robustness_files import write_evaluation_files

VERDICTS = "verdicts.json"
#: What is packed: of trainings, of evaluations.
KEPT = ("run.json", "history.json", "card.json"), ("run.json", SUMMARY, "accuracy.csv", "curves.svg", "report.html")


def put_together(name: str, parts: Sequence[Share], runs: Path) -> Path | None:
    """One folder of all shares that are finished, as one evaluation of all their networks would have written it.

    Raises:
        UsageError: two shares are not of the same images and conditions.
    """
    done = [RunFolder(share.folder) for share in parts if finished(share)]
    if not done:
        return None
    settings = [folder.settings(EvaluationFile, RunKind.ROBUSTNESS) for folder in done]
    summaries = [folder.summary(EvaluationSummary, "the summary of an evaluation") for folder in done]
    first = settings[0]
    for folder, own in zip(done, settings, strict=True):
        if (own.identity, own.images, own.conditions) != (first.identity, first.images, first.conditions):
            raise UsageError(
                f"{folder.path} is of other images or conditions than {done[0].path}: remove one of the two, and "
                "repeat the command."
            )
    together = RunFolder(runs / name)
    summary = replace(
        summaries[0],
        accuracies=tuple(chain.from_iterable(own.accuracies for own in summaries)),
        scores=tuple(chain.from_iterable(own.scores for own in summaries)),
        checks=tuple(chain.from_iterable(own.checks for own in summaries)),
    )
    models = tuple(chain.from_iterable(own.models for own in settings))
    keys = tuple(chain.from_iterable(own.parts for own in settings))
    make_folder(together.path)
    json_file.write(together.settings_file, replace(first, models=models, parts=keys))
    together.write_summary(summary)
    how = first.identity.settings
    about = f"{first.images:,} {summary.examples} of {first.data}, protocol {how.protocol.value}"
    write_evaluation_files(together.path, summary, f"{about}, seed {how.seed}, {how.precision}.")
    return together.path


def judge(folders: Sequence[Path], runs: Path, figures: Path | None = None) -> None:
    """Print and store verdicts; with a folder for figures, draw them."""
    command = [sys.executable, "-m", "attnaudit", "judge", *map(str, folders)]
    subprocess.run(command, check=False)
    drawn = [] if figures is None else ["--out", str(figures)]
    found = subprocess.run([*command, "--json", *drawn], capture_output=True, check=True)
    write_whole(runs / VERDICTS, (json.dumps(json.loads(found.stdout), indent=1) + "\n").encode())


def pack(trainings: Sequence[Job], names: Sequence[str], runs: Path, archive: Path, more: Sequence[str] = ()) -> None:
    """Everything that says something of the networks and of no single image, and `more` files of the folder.

    The shares that are finished are in it, so that they can be judged even if they were never put together.
    """
    of_trainings, of_evaluations = KEPT
    files = [training.folder / name for training in trainings for name in of_trainings]
    files += [runs / folder / name for folder in names for name in of_evaluations]
    files += [
        runs / VERDICTS,
        *(runs / name for name in more),
        *sorted(runs.glob("*.log")),
        *sorted(runs.glob("shares/*.log")),
        *(own.with_name(file) for own in sorted(runs.glob(f"shares/*/{SUMMARY}")) for file in ("run.json", SUMMARY)),
    ]
    write_archive(files, runs, archive)


def write_archive(files: Sequence[Path], root: Path, archive: Path) -> None:
    """Those of the files that exist, by their place below `root`, as a whole .tar.gz or not at all."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for file in filter(Path.exists, files):
            packed.add(file, file.relative_to(root))
    write_whole(archive, buffer.getvalue())
    print(f"{archive}: {len(buffer.getvalue()) / 1e6:.1f} MB")
