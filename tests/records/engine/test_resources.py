"""Where units run, and the memory they may take."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.records.engine import PROCESS_BYTES, Resources, default_memory, format_size, parse_memory


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8GiB", 8 * 2**30),
        ("512 mb", 512 * 10**6),
        ("1.5gb", 1_500_000_000),
        ("1000000000", 10**9),
        ("2TiB", 2**41),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "GB", "-1GB", "8GG", "8 G B", "1e9", "1.GB", "٣GB x"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(UsageError, match="must be a size such as 8GB") as caught:
        parse_memory(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 byte"), (5000, "5,000 bytes"), (600 * 10**6, "600 MB"), (999_000_000, "999 MB"), (1_500_000_000, "1.5 GB")],
)
def test_sizes_are_written_as_people_read_them(size, text):
    assert format_size(size) == text


def test_half_of_the_machine_is_the_default():
    assert Resources().memory == default_memory() > PROCESS_BYTES


def test_too_little_for_the_processes_is_refused():
    with pytest.raises(UsageError, match="is too little for 4 processes"):
        Resources(workers=4, memory=3 * PROCESS_BYTES)


def test_memory_limits_how_many_processes_are_started_by_default(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert Resources(None, memory=4 * PROCESS_BYTES).processes(units=1000) == 2
    assert Resources(None, memory=1000 * PROCESS_BYTES).processes(units=1000) == 64
    assert Resources(None, memory=1000 * PROCESS_BYTES).processes(units=3) == 1


def test_no_more_processes_are_started_than_there_are_units():
    assert Resources(workers=4, memory=100 * PROCESS_BYTES).processes(units=3) == 3


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_is_refused(workers):
    with pytest.raises(UsageError, match=f"--workers must be ≥ 1, got {workers}"):
        Resources(workers=workers)


def test_what_is_not_an_address_is_refused():
    with pytest.raises(UsageError, match="got 'somewhere'"):
        Resources(cluster="somewhere")


def test_workers_and_cluster_exclude_each_other():
    with pytest.raises(UsageError, match="exclude each other"):
        Resources(workers=2, cluster="tcp://127.0.0.1:8786")
