"""Where units run: in this process, or in worker processes of one thread each. Both give the same bits."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache

import torch
from threadpoolctl import threadpool_limits

from attnaudit.audit.unit import AuditUnit, compute
from attnaudit.errors import WorkerError
from attnaudit.records.run_folder import RunFolder, encoded
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model

#: Units that are sent ahead to each worker, so that it never waits and a long run is not sent all at once.
PENDING_PER_WORKER = 2


def run_here(units: Sequence[AuditUnit], model: LoadedModel, folder: RunFolder, memory: int) -> Iterator[AuditUnit]:
    """Compute and store units one after the other, yielding each when its part is on disk."""
    with single_threaded():
        for unit in units:
            folder.write_part(unit.key, encoded(*compute(unit, model, memory)))
            yield unit


def run_in_processes(
    units: Sequence[AuditUnit], spec: ModelSpec, folder: RunFolder, workers: int, memory: int
) -> Iterator[AuditUnit]:
    """The same, in `workers` processes that build the model once each; yields units as they finish.

    `memory` is what each of them may take.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker) as pool:
        waiting = iter(units)
        running: dict[Future[None], AuditUnit] = {}
        try:
            while True:
                while len(running) < workers * PENDING_PER_WORKER and (unit := next(waiting, None)) is not None:
                    running[pool.submit(_work, unit, spec, folder, memory)] = unit
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    unit = running.pop(future)
                    future.result()
                    yield unit
        except BrokenProcessPool as error:
            raise WorkerError(
                "A worker process died, perhaps for want of memory: repeat the command to go on, with fewer --workers."
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread for torch and BLAS, so that sums do not depend on how many cores there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def _start_worker() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


@lru_cache(maxsize=1)
def built_model(spec: ModelSpec) -> LoadedModel:
    """The model of a spec, built once per process and kept for the next unit."""
    return load_model(spec)


def _work(unit: AuditUnit, spec: ModelSpec, folder: RunFolder, memory: int) -> None:
    folder.write_part(unit.key, encoded(*compute(unit, built_model(spec), memory)))
