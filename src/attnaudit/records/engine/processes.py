"""Units in worker processes of this machine. Units and recipes go out, the content of the parts comes back."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from attnaudit.errors import WorkerError
from attnaudit.records.engine.plan import AnyUnit, Parts, Task, Worker, WorkerRecipe
from attnaudit.records.parts import encode_part

#: Units that are sent ahead to each worker, so that it never waits and a long run is not sent all at once.
PENDING_PER_WORKER = 2


def compute_in_processes(tasks: Sequence[Task[AnyUnit]], processes: int, memory: int) -> Parts:
    """Compute units in new processes, each of which may take `memory` bytes.

    Raises:
        WorkerError: one of them died.
    """
    modules = dict.fromkeys(name for _, recipe in tasks for name in recipe.modules)
    with TemporaryDirectory(prefix="attnaudit-") as folder, worker_pool(processes, modules, folder) as pool:
        waiting = iter(tasks)
        running: dict[Future[bytes], AnyUnit] = {}
        finished: SimpleQueue[Future[bytes]] = SimpleQueue()  # `wait` may be interrupted with locks that the pool needs
        try:
            while True:
                while len(running) < processes * PENDING_PER_WORKER and (task := next(waiting, None)) is not None:
                    unit, recipe = task
                    with starting_processes():
                        future = pool.submit(compute_part, unit, recipe, memory, Path(folder))
                        running[future] = unit
                        future.add_done_callback(finished.put)
                if not running:
                    return
                future = finished.get()
                yield running.pop(future).key, future.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "A worker process died, perhaps because memory ran out: repeat the command to resume, with fewer "
                "--workers."
            ) from error


@contextmanager
def worker_pool(
    processes: int, modules: Iterable[str] = (), folder: str | None = None
) -> Iterator[ProcessPoolExecutor]:
    """New processes, to which work must be submitted within `starting_processes`.

    They end with this process, however it ends, and in the middle of their work if the block is left by an error.
    `modules` are what they will import: on Linux that is done once for all of them. A `folder` of this process is
    removed by them if it is killed.
    """
    with _context(modules) as context:
        watched, held = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_watch_parent, initargs=(watched, folder))
        try:
            yield pool
        except BaseException:
            held.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            held.close()
            watched.close()


@contextmanager
def _context(modules: Iterable[str]) -> Iterator[BaseContext]:
    """How processes start: from scratch, or forked from one that has imported the modules and done nothing else.

    That one has no threads at work, no GPU, and nothing of this process, so that on Linux it can be forked. Libraries
    of macOS do not stand that. It ends with the block: later ones may need another environment. If the program has
    such a process of its own, that is left alone.
    """
    server: Any = vars(forkserver)["_forkserver"]
    if sys.platform != "linux" or server._forkserver_alive_fd is not None:
        yield multiprocessing.get_context("spawn")
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    try:
        yield context
    finally:
        context.set_forkserver_preload(["__main__"])  # as it was
        server._stop()


@contextmanager
def starting_processes() -> Iterator[None]:
    """Processes that are started within leave Ctrl-C to this one, and do not import the program that runs here.

    A new process imports the `__main__` of the old one, so a script without `if __name__ == "__main__"` would start
    itself over and over. Our workers need nothing from it; `can_travel` says whether that is so.
    """
    import __main__ as main  # now, for it may have been replaced since this file was imported

    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    vars(main).update(__file__=None, __spec__=None)
    try:
        with _blocked_interrupts():
            yield
    finally:
        del main.__file__
        vars(main).update(kept)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """A new process inherits what its parent blocks; another thread of the parent still takes the signal."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def can_travel(task: Task[AnyUnit]) -> bool:
    """Whether another process can unpickle a task: not what is defined in `__main__`, such as a theory of one's own."""
    try:
        return b"__main__" not in pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):  # a lambda, a local class, an open file
        return False


def compute_part(unit: AnyUnit, recipe: WorkerRecipe[AnyUnit], memory: int, shared: Path | None = None) -> bytes:
    """In a worker process: the content of a part."""
    worker = _worker(recipe, memory, shared)
    with worker.context():
        return encode_part(unit.key, *worker.compute(unit))


#: The worker of this process, kept for its next unit.
_built: dict[tuple[WorkerRecipe[Any], int, Path | None], Worker[Any]] = {}


def _worker(recipe: WorkerRecipe[AnyUnit], memory: int, shared: Path | None) -> Worker[AnyUnit]:
    if (recipe, memory, shared) not in _built:
        _built.clear()  # before another is built: a worker may hold a model, and there is memory for one
        _built[recipe, memory, shared] = recipe.build(memory, shared)
    return _built[recipe, memory, shared]


def _watch_parent(watched: multiprocessing.connection.Connection, folder: str | None) -> None:
    threading.Thread(target=_exit_with_parent, args=(watched, folder), daemon=True).start()


def _exit_with_parent(watched: multiprocessing.connection.Connection, folder: str | None) -> None:
    """A worker whose parent was killed would otherwise wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel, watched])  # closed at the other end, it is ready
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)
