"""What runs say: verdicts, and what changed between two of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attnaudit.audit.difference import Difference, difference
from attnaudit.claims import jury
from attnaudit.claims.claim import Claim
from attnaudit.claims.jury import Judgement
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_about, claims_named
from attnaudit.display import counted
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records.audit import open_audit
from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.records.run_folder import RunFolder, check_no_run
from attnaudit.records.run_kind import RunKind
from attnaudit.records.training import open_trainings
from attnaudit.report.figure_files import write_judged_figures
from attnaudit.report.progress import busy

_log = logging.getLogger(__name__)
Folder = str | Path


def judge(
    runs: Folder | Sequence[Folder],
    *,
    claims: Sequence[str | Claim] | Literal["all"] = "all",
    out: Folder | None = None,
) -> Judgement:
    """Judge claims about training and robustness from training runs, finished or not, and evaluations.

    Args:
        runs: folders that `train` or `robust` wrote.
        claims: `"all"` that the folders have something to say about, or names, see `attnaudit ls claims`, and claims
            of your own.
        out: a folder for figures and their numbers: test accuracy and scores by epoch, accuracy under corruptions and
            attacks of growing strength, gains over symmetric attention.
    """
    paths = run_paths(runs)
    if out is not None:
        check_no_run(Path(out))
    for path in paths:
        if not path.is_dir():
            wrong = f"{path} is a file" if path.exists() else f"The folder {path} does not exist"
            raise RunFolderError(f"{wrong}: give folders written by attnaudit train or attnaudit robust.")
    kinds = {path: RunFolder(path).kind for path in paths}
    evaluations = open_evaluations([path for path in paths if kinds[path] is RunKind.ROBUSTNESS])
    trainings = open_trainings([path for path in paths if kinds[path] is not RunKind.ROBUSTNESS])
    found = {RecordKind.TRAINING: trainings, RecordKind.EVALUATION: evaluations}
    if claims == "all":
        chosen = claims_about(*(kind for kind, records in found.items() if records))
    else:
        chosen = claims_named(claims, *found)
    with busy(f"judging {counted(len(chosen), 'claim')}"):
        judgement = jury.judge(chosen, [*trainings, *evaluations])
    judged = {verdict.claim for verdict in judgement.verdicts}
    for claim in chosen:
        if claim.name not in judged:
            _log.warning("%s is not judged: it needs %s.", claim.name, claim.needs)
    if out is not None:
        write_judged_figures(trainings, evaluations, Path(out))
    return judgement


def diff(first: Folder, second: Folder) -> Difference:
    """Compare two audits head by head: the mean difference of every measure, with an interval over inputs.

    Heads are paired by input, layer, head and window, and models by name. If both runs have one model, their names may
    differ, as for a trained network and its untrained twin.
    """
    with busy("comparing heads"):
        return difference(open_audit(Path(first)), open_audit(Path(second)))


def run_paths(runs: Folder | Sequence[Folder]) -> list[Path]:
    """The folders as a list, which must not be empty."""
    paths = [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]
    if not paths:
        raise UsageError("No run folder is given: name at least one.")
    return paths
