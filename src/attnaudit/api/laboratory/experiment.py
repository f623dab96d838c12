"""What the experiments have in common: telling of progress, judging, and writing data, table and figure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from attnaudit import defaults
from attnaudit.claims import Claim
from attnaudit.claims.jury import Judgement, judge
from attnaudit.errors import MissingExtraError
from attnaudit.gaussian.experiments.findings import Findings
from attnaudit.numerics.threads import torch_threads
from attnaudit.records.engine import Progress
from attnaudit.records.files import check_writable, make_folder
from attnaudit.records.run_folder import check_no_run
from attnaudit.report.data_files import write_parquet, write_rows
from attnaudit.report.drawing import for_screen_and_print
from attnaudit.report.gaussian import check_rows
from attnaudit.report.progress import shown_progress

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """What an experiment found, what that says of its claim, and the files it wrote."""

    title: str
    findings: Findings
    judgement: Judgement
    files: tuple[Path, ...]


def path_of(place: str | Path | None) -> Path | None:
    """A path, if one was given."""
    return None if place is None else Path(place)


@contextmanager
def timed(progress: Progress | bool, label: str, out: str | Path | None) -> Iterator[Callable[[int, int], None]]:
    """Tell of progress and then of the time taken, as messages, so that the results are the same every time.

    Before anything is computed, the folder for the results is checked. Runs on one CPU thread: such small products are
    slower on several, and their last digits depend on the number.

    Raises:
        RunFolderError: `out` cannot be written, or is the folder of a run, to which figures and data do not belong.
    """
    if out is not None:
        check_no_run(Path(out))
        check_writable(Path(out))  # an experiment that could not be written would be lost
    begin = time.perf_counter()
    with shown_progress(progress, label) as told, torch_threads(1):
        yield lambda done, total: told(done, total, label)
    _log.info("Took %.1f s.", time.perf_counter() - begin)


def conclude(
    name: str,
    title: str,
    findings: Findings,
    draw: Callable[[Sequence[Path]], None],
    out: str | Path | None,
    claim: Claim | None = None,
) -> Experiment:
    """Judge the claim, and write data, table and, if matplotlib is installed, the figure."""
    folder = Path(out) if out is not None else Path(defaults.RUNS) / f"gaussian-{name}"
    make_folder(folder)
    figures, data, table = for_screen_and_print(folder, name), folder / f"{name}.parquet", folder / f"{name}.csv"
    write_parquet(findings.records, data)
    write_rows(check_rows(findings.checks), table)
    judgement = judge([] if claim is None else [claim], findings.trials)
    files: tuple[Path, ...] = (data, table)
    try:
        draw(figures)
        files = (*figures, *files)
    except MissingExtraError as error:
        _log.warning("The figure is not drawn: %s", error)
    _log.info("Wrote %s.", ", ".join(map(str, files)))
    return Experiment(title, findings, judgement, files)
