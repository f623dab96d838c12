"""Units on the workers of a dask cluster. What travels is a unit and how to build its model; what returns is its part.

The part comes back as the bytes of its file and is written here, so workers need no access to the run folder. Since a
part is named by what it holds, a unit that ran twice, because a worker died before its answer was through, changes
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attnaudit._version import __version__
from attnaudit.audit.pool import PENDING_PER_WORKER, built_model, single_threaded
from attnaudit.audit.unit import AuditUnit, compute
from attnaudit.errors import InputError, ModelError, UsageError, WeightsError, WorkerError
from attnaudit.extras import optional
from attnaudit.records.run_folder import RunFolder, encoded
from attnaudit.records.versions import installed_versions
from attnaudit.sources.model import LoadedModel, ModelSpec

#: Seconds to wait for the scheduler, and for workers where there are none.
CONNECTING = 5
WITHOUT_WORKERS = 30

_log = logging.getLogger(__name__)


def run_on_cluster(
    units: Sequence[AuditUnit], model: ModelSpec | LoadedModel, folder: RunFolder, address: str, memory: int
) -> Iterator[AuditUnit]:
    """Compute units on the workers of the scheduler at `address`, and store them here; yields units as they finish.

    Raises:
        UsageError: the model was given in memory, or this is no address.
        WorkerError: there is no scheduler or no worker, or workers keep dying.
    """
    if not isinstance(model, ModelSpec):
        raise UsageError("A model given in memory cannot travel to a cluster: name it, or leave the cluster out.")
    spec = replace(model, weights=model.weights and model.weights.absolute())
    with _connected(address) as client:
        _check_workers(client, address)
        waiting = iter(units)
        running: dict[Any, AuditUnit] = {}
        while True:
            room = max(len(client.nthreads()), 1) * PENDING_PER_WORKER  # workers come and go
            while len(running) < room and (unit := next(waiting, None)) is not None:
                running[client.submit(_work, unit, spec, memory, key=f"attnaudit-{unit.key}")] = unit
            if not running:
                return
            for future in _finished(client, address, running):
                unit = running.pop(future)
                folder.write_part(unit.key, _result(future, address))
                yield unit


def _work(unit: AuditUnit, spec: ModelSpec, memory: int) -> bytes:
    """On a worker: the Parquet file of a unit, to the bit what a run without workers would have written."""
    distributed = _distributed()
    threads = distributed.get_worker().state.nthreads
    if threads != 1:
        raise UsageError(f"A dask worker has {threads} threads, but a model serves one: start it with --nthreads 1.")
    with single_threaded():
        model = built_model(spec)
        if model.fingerprint != unit.model_fingerprint:
            raise WeightsError(f"A worker has other weights for {spec.label} than this machine.")
        return encoded(*compute(unit, model, memory))


def _distributed() -> Any:
    return optional("distributed", "cluster", "A cluster")


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    distributed = _distributed()
    try:
        distributed.comm.get_address_host_port(address)
    except ValueError as error:
        raise UsageError(f"--cluster {address!r} is no address: write it as tcp://HOST:PORT.") from error
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
            except (CancelledError, OSError) as error:  # ours are no OSErrors: this is the connection
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
    """Wait for the first worker, and say so if one has other versions than this machine."""
    try:
        client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
        found = client.run(_versions)
    except TimeoutError as error:
        raise _no_workers(address) from error
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"A worker at {address} lacks {error.name}: install attnaudit there as it is here."
        ) from error
    here = _versions()
    for worker, there in found.items():
        other = [f"{name} {there.get(name)} (here {here[name]})" for name in here if there.get(name) != here[name]]
        if other:
            _log.warning("Worker %s has %s: its numbers may differ in their last digits.", worker, ", ".join(other))


def _versions() -> dict[str, str]:
    return {"attnaudit": __version__, **installed_versions()}


def _finished(client: Any, address: str, running: dict[Any, AuditUnit]) -> set[Any]:
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
            f"One unit killed several workers at {address}, perhaps for want of memory: give them more, and repeat the "
            "command to go on."
        ) from error
    except (InputError, ModelError, WeightsError) as error:
        raise type(error)(
            f"{error} (Said by a worker at {address}: it needs the same files under the same paths as here.)"
        ) from error
    return content


def _no_workers(address: str) -> WorkerError:
    return WorkerError(
        f"The scheduler at {address} has no workers: start some with `dask worker {address} --nthreads 1`, and repeat."
    )
