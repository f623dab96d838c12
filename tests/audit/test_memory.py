"""What an audit may take."""

import pytest

import attnaudit
from attnaudit.audit import Resources
from attnaudit.audit.memory import PROCESS_BYTES, default_memory, parse_memory
from attnaudit.errors import UsageError

pytest.importorskip("timm")


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
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="is no size: write it as 8GB"):
        parse_memory(text)


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


def test_heads_that_do_not_fit_are_refused_before_they_are_measured(image_folder, tmp_path):
    with pytest.raises(UsageError, match=r"heads of 101 tokens takes about 6\d\d MB here, more than the 600 MB"):
        attnaudit.audit("test_vit", image_folder, random_weights=True, out=tmp_path / "run", memory=PROCESS_BYTES)
    assert not (tmp_path / "run").exists()


def test_memory_changes_neither_numbers_nor_names(image_folder, tmp_path):
    runs = [
        attnaudit.audit("test_vit", image_folder, random_weights=True, out=tmp_path / size, memory=size, limit=2)
        for size in ("700MB", "64GB")
    ]
    first, second = ({p.name: p.read_bytes() for p in (run.path / "evidence").iterdir()} for run in runs)
    assert first == second
