"""Units on the workers of a dask cluster. Units and recipes go out, the content of the parts comes back.

Parts are written here, so workers need no access to the run folder. Since a part is named by what it holds, a unit that
ran twice, because a worker died before its answer arrived, changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from attnaudit._version import __version__
from attnaudit.errors import InputError, ModelError, UsageError, WeightsError, WorkerError
from attnaudit.extras import optional
from attnaudit.records.engine.plan import AnyUnit, Parts, Task, WorkerRecipe
from attnaudit.records.engine.processes import PENDING_PER_WORKER, compute_part
from attnaudit.records.engine.resources import bad_address
from attnaudit.records.versions import installed_versions

#: Seconds to wait for the scheduler, and for workers where there are none.
CONNECTING = 5
WITHOUT_WORKERS = 30

_log = logging.getLogger(__name__)


def compute_on_cluster(tasks: Sequence[Task[AnyUnit]], address: str, memory: int) -> Parts:
    """Compute units on the workers of the scheduler at `address`, each of which may take `memory` bytes.

    Raises:
        UsageError: this is not an address, or a worker has several threads.
        WorkerError: there is no scheduler or no worker, or workers keep dying.
    """
    with _connected(address) as client:
        _check_workers(client, address)
        waiting = iter(tasks)
        running: dict[Any, AnyUnit] = {}
        while True:
            room = max(len(client.nthreads()), 1) * PENDING_PER_WORKER  # workers come and go
            while len(running) < room and (task := next(waiting, None)) is not None:
                unit, recipe = task
                running[client.submit(_compute_part, unit, recipe, memory, key=f"attnaudit-{unit.key}")] = unit
            if not running:
                return
            for future in _finished(client, address, running):
                yield running.pop(future).key, _result(future, address)


def _compute_part(unit: AnyUnit, recipe: WorkerRecipe[AnyUnit], memory: int) -> bytes:
    """On a worker of the cluster: the content of a part, to the bit what this machine would have computed."""
    threads = _distributed().get_worker().state.nthreads
    if threads != 1:
        raise UsageError(f"A dask worker must have 1 thread, got {threads}: start it with --nthreads 1.")
    return compute_part(unit, recipe, memory)


def _distributed() -> Any:
    return optional("distributed", "cluster", "A cluster")


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    distributed = _distributed()
    try:
        distributed.comm.get_address_host_port(address)
    except ValueError as error:
        raise bad_address(address) from error
    with _quiet():
        try:
            client = distributed.Client(address, timeout=CONNECTING, set_as_default=False)
        except OSError as error:
            raise WorkerError(
                f"No dask scheduler answers at {address}: start one with `dask scheduler`, and give its address."
            ) from error
        with client:
            try:
                yield client
            except (CancelledError, OSError) as error:  # none of our errors is an OSError: this is the connection
                raise WorkerError(
                    f"The scheduler at {address} is gone: what was finished is stored; start it and repeat the command."
                ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs every lost connection; what matters of it is in our errors."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.gc")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_workers(client: Any, address: str) -> None:
    """Wait for the first worker, and warn of every one that has other versions than this machine."""
    try:
        client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
    except TimeoutError as error:
        raise _no_workers(address) from error
    here = _versions()
    for worker, there in client.run(_versions, on_error="return").items():
        if isinstance(there, ModuleNotFoundError):
            raise WorkerError(f"A worker at {address} lacks {there.name}: install attnaudit there as it is here.")
        if isinstance(there, OSError):
            continue  # it died in the meantime, and its units run elsewhere
        other = [f"{name} {there.get(name)} (here {here[name]})" for name in here if there.get(name) != here[name]]
        if other:
            _log.warning("Worker %s has %s: its numbers may differ in their last digits.", worker, ", ".join(other))


def _versions() -> dict[str, str]:
    return {"attnaudit": __version__, **installed_versions()}


def _finished(client: Any, address: str, running: dict[Any, AnyUnit]) -> set[Any]:
    """Wait until some units are finished, as long as there are workers."""
    wait = _distributed().wait
    while True:
        try:
            with client.as_current():
                done: set[Any] = wait(list(running), timeout=WITHOUT_WORKERS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            if not client.nthreads():
                raise _no_workers(address) from None
        else:
            return done


def _result(future: Any, address: str) -> bytes:
    distributed = _distributed()
    try:
        content: bytes = future.result()
    except distributed.KilledWorker as error:
        raise WorkerError(
            f"One unit killed several workers at {address}, perhaps because memory ran out: give them more, and repeat "
            "the command to resume."
        ) from error
    except (InputError, ModelError, WeightsError) as error:
        raise type(error)(
            f"{error} (Reported by a worker at {address}: it needs the same files under the same paths as here.)"
        ) from error
    return content


def _no_workers(address: str) -> WorkerError:
    return WorkerError(
        f"The scheduler at {address} has no workers: start some with `dask worker {address} --nthreads 1`, and repeat."
    )
