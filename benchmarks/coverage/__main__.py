"""Capture the models of whole libraries, and count what is captured, refused and missed.

Results are kept by model in `--cache`, so that a run can be continued; `--page` writes them as a page.
"""

from __future__ import annotations

import argparse
import glob
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import Queue

from benchmarks.coverage.case import Case
from benchmarks.coverage.introduction import INTRODUCTION
from benchmarks.coverage.page import page
from benchmarks.coverage.result import NOT_REACHED, SLOW, Result
from benchmarks.coverage.worker import Worker

from attnaudit.records.files import write_whole


def main() -> None:
    options = _options()
    cases = _cases(options.only)
    if options.list:
        print("\n".join(map(str, cases)))
        return
    workers: Queue[Worker] = Queue()
    for _ in range(options.jobs):
        workers.put(Worker(options.seconds, options.device))

    def measured(case: Case) -> Result:
        path = _path(options.cache, case)
        if path.exists() and options.again != "all":
            known = Result(**json.loads(path.read_text()))
            if options.again is None or known.not_run is None:
                return known
        if _is_slow(options.cache, case, options.once_above):
            reason = f"another implementation {SLOW} {options.once_above:g} s"
            return Result(case.library, case.model, case.implementation, not_run=reason)
        if options.no_more:
            return Result(case.library, case.model, case.implementation, not_run=NOT_REACHED)
        worker = workers.get()
        try:
            result = worker.measure(case)
        finally:
            workers.put(worker)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(result.to_dict()).encode())
        return result

    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for number, result in enumerate(pool.map(measured, cases), 1):
            print(f"{number}/{len(cases)} {result.line}", flush=True)
            results.append(result)
    while not workers.empty():
        workers.get().stop()
    if options.page is not None:
        options.page.write_text(page(results, INTRODUCTION))


def _cases(only: list[str]) -> list[Case]:
    from benchmarks.coverage.libraries import LIBRARIES, missing

    cases = []
    for library in LIBRARIES.values():
        if absent := missing(library):
            print(
                f"{library.name} is left out because {', '.join(absent)} cannot be imported: "
                "install the models with `pip install 'attnaudit[coverage-models]'`.",
                file=sys.stderr,
            )
        else:
            cases += library.cases()
    return [case for case in cases if not only or any(fnmatch(str(case), pattern) for pattern in only)]


def _path(cache: Path, case: Case) -> Path:
    return cache / case.library / f"{case.model.replace('/', '-')}.{case.implementation}.json"


def _is_slow(cache: Path, case: Case, seconds: float) -> bool:
    """Whether another implementation of the model took longer than this."""
    others = _path(cache, case).parent.glob(f"{glob.escape(case.model.replace('/', '-'))}.*.json")
    return any(json.loads(path.read_text())["seconds"] > seconds for path in others if path != _path(cache, case))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for results by model")
    parser.add_argument("--only", nargs="*", default=[], metavar="PATTERN", help="such as 'timm/swin*' or '*/eager'")
    parser.add_argument("--again", choices=("failed", "all"), help="measure models again that could not be run, or all")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--device", default="cpu", help="where models run, such as cuda")
    parser.add_argument("--seconds", type=float, default=120, help="the time limit of one model")
    parser.add_argument(
        "--once-above",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="one implementation is enough of models that take longer",
    )
    parser.add_argument("--no-more", action="store_true", help="measure nothing, only read the cache")
    parser.add_argument("--page", type=Path, help="write the results to this Markdown file")
    parser.add_argument("--list", action="store_true", help="only print the models")
    return parser.parse_args()


if __name__ == "__main__":
    main()
