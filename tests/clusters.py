"""Dask clusters on this machine, and addresses without one."""

import socket

import pytest


def local_cluster(workers=2):
    """Worker processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        host="127.0.0.1",
        silence_logs=50,
    )


@pytest.fixture(scope="module")
def cluster():
    """One that nothing happens to."""
    with local_cluster() as running:
        yield running


@pytest.fixture
def mortal_cluster():
    """One of its own for a test that kills workers, since not every one comes back; a unit may kill one, not two."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), local_cluster() as running:
        yield running


@pytest.fixture
def no_scheduler():
    """An address of this machine where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"
