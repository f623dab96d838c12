"""Pages to look at: of audits, side by side, and of monitors and trainings over their steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from attnaudit.api.judging import Folder, run_paths
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records.audit import open_audit
from attnaudit.records.engine import Progress
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.report.course import write_course_page
from attnaudit.report.page import FILE, write_page
from attnaudit.report.progress import shown_progress
from attnaudit.training.course import Course, open_course
from attnaudit.training.monitor_log import Reading

_log = logging.getLogger(__name__)
#: More models do not fit on a page, however little is shown of each.
MOST_MODELS = 40
#: Seconds between two looks at a folder that is being watched.
_PAUSE = 5.0


def report(
    runs: Folder | Sequence[Folder],
    out: Folder | None = None,
    *,
    watch: bool = False,
    progress: Progress | bool = True,
) -> Path:
    """Write one self-contained HTML page, and return its path.

    It shows one audit, or several side by side; or what a monitor measured over the steps of a training, which may
    still be running, in which case the page says up to which step. Of several folders, those that hold something else
    are left out, which is said.

    Args:
        runs: run folders.
        out: the file; by default `report.html`, of one run in its folder, of several here.
        watch: write the page of a monitor or a training anew with every step, until it ends.
        progress: a function that is told of every run or step that was read; True for a bar, False for none.

    Raises:
        RunFolderError: none of the folders can be shown, or one of them is damaged.
        UsageError: the runs have more models than fit on a page, or an audit is to be watched.
    """
    given = run_paths(runs)
    kinds = _kinds(given)
    audits = [path for path, kind in kinds.items() if kind is RunKind.AUDIT]
    paths = audits or list(kinds)
    page = Path(out) if out is not None else (paths[0] if len(paths) == 1 else Path()) / FILE
    if not audits:
        return _write_courses(paths, page, watch, progress)
    if watch:
        raise UsageError("--watch is for the folder of a monitor or a training: an audit has no steps.")
    for path in kinds:
        if path not in audits:
            _log.warning("Left out: %s holds %s; give it without audits to draw it.", path, kinds[path].words)
    _check_number(audits)
    opened = []
    with shown_progress(progress, "reading runs") as told:
        for place, path in enumerate(audits):
            opened.append(open_audit(path))
            told(place + 1, len(audits), f"reading {path}")
    return write_page(opened, page)


def _kinds(paths: Sequence[Path]) -> dict[Path, RunKind]:
    """What the folders hold. A single one must hold something to show; of several, those that do not are left out."""
    found, reasons = {}, []
    for path in paths:
        try:
            kind = _shown_kind(path)
        except RunFolderError as error:
            if len(paths) == 1:
                raise
            reasons.append(str(error))
            _log.warning("Left out: %s", error)
        else:
            found[path] = kind
    if not found:
        raise RunFolderError(f"None of the {len(paths)} folders can be shown; the first: {reasons[0]}")
    return found


def _shown_kind(path: Path) -> RunKind:
    folder = RunFolder(path)
    if not path.is_dir():
        raise RunFolderError(f"{path} is not a folder: give folders that attnaudit audit, train or a monitor wrote.")
    kind = folder.kind
    if kind is RunKind.ROBUSTNESS:
        page = path / FILE
        where = f"open {page}" if page.exists() else f"repeat its command, or read it by attnaudit judge {path}"
        raise RunFolderError(f"{path} holds {kind.words}, which has a page of its own: {where}.")
    if kind is RunKind.HEAD_VIEWS:
        raise RunFolderError(f"{path} holds {kind.words}, which the page of their audit shows: give {path.parent}.")
    if kind is RunKind.AUDIT and not folder.summary_file.exists():
        raise RunFolderError(f"{path} holds an audit that is not finished: repeat its command.")
    return kind


def _check_number(audits: Sequence[Path]) -> None:
    """Refuse what cannot fit before anything is read."""
    models = sum(len(RunFolder(path).header()["identity"].get("models", ())) for path in audits)
    if models > MOST_MODELS:
        raise UsageError(
            f"These {len(audits)} runs have {models} models, and a page has room for {MOST_MODELS}: give fewer runs."
        )


def _write_courses(paths: Sequence[Path], page: Path, watch: bool, progress: Progress | bool) -> Path:
    known: dict[str, Reading] = {}
    drawn: list[tuple[int, bool]] = []
    while True:
        with shown_progress(progress, "reading steps") as told:
            courses = [open_course(path, progress=told, known=known) for path in paths]
        state = [(len(course.parts) + len(course.history), course.writer is not None) for course in courses]
        if state != drawn:
            *_, written = write_course_page(courses, page)
            drawn = state
            for course in courses:
                _log.info("%s", _where(course))
        if not watch or not any(is_running for _, is_running in state):
            return written
        time.sleep(_PAUSE)


def _where(course: Course) -> str:
    of = "" if course.total is None else f" of {course.total:,}"
    return f"{course.name}: up to step {course.last_step:,}{of}{', still running' if course.writer else ''}."
