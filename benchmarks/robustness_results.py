"""What the robustness experiment makes of finished work: one folder per evaluation, verdicts, an archive."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.robustness_jobs import SUMMARY, Job, Share, evaluation, finished

from attnaudit.records.files import write_whole

VERDICTS = "verdicts.json"
#: What is packed: of trainings, of evaluations.
KEPT = ("run.json", "history.json", "card.json"), ("run.json", SUMMARY, "accuracy.csv", "curves.svg", "report.html")


def put_together(name: str, parts: Sequence[Share], runs: Path) -> Path | None:
    """One folder of all shares that are finished: their parts are named by what they hold, so nothing is repeated."""
    done = [share for share in parts if finished(share)]
    if not done:
        return None
    folder = runs / name
    (folder / "evidence").mkdir(parents=True, exist_ok=True)
    shutil.copy(done[0].folder / "run.json", folder)
    for share in done:
        shutil.copytree(share.folder / "evidence", folder / "evidence", dirs_exist_ok=True)
    networks = [network for share in done for network in share.networks]
    with folder.with_suffix(".log").open("ab") as log:
        words = evaluation(networks, done[0].options, folder)
        subprocess.run([sys.executable, "-m", "attnaudit", *words], stdout=log, stderr=log, check=True)
    return folder


def judge(folders: Sequence[Path], runs: Path, figures: Path | None = None) -> None:
    """Print and store verdicts; with a folder for figures, draw them."""
    command = [sys.executable, "-m", "attnaudit", "judge", *map(str, folders)]
    subprocess.run(command, check=False)
    drawn = [] if figures is None else ["--out", str(figures)]
    found = subprocess.run([*command, "--json", *drawn], capture_output=True, check=True)
    write_whole(runs / VERDICTS, (json.dumps(json.loads(found.stdout), indent=1) + "\n").encode())


def pack(trainings: Sequence[Job], names: Sequence[str], runs: Path, archive: Path, more: Sequence[str] = ()) -> None:
    """Everything that says something of the networks and of no single image, and `more` files of the folder."""
    of_trainings, of_evaluations = KEPT
    files = [training.folder / name for training in trainings for name in of_trainings]
    files += [runs / folder / name for folder in names for name in of_evaluations]
    files += [
        runs / VERDICTS,
        *(runs / name for name in more),
        *sorted(runs.glob("*.log")),
        *sorted(runs.glob("shares/*.log")),
    ]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for file in filter(Path.exists, files):
            packed.add(file, file.relative_to(runs))
    write_whole(archive, buffer.getvalue())
    print(f"{archive}: {len(buffer.getvalue()) / 1e6:.1f} MB")
