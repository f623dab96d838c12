"""Heads that do not fit into memory are refused, and those that do have the same numbers in any amount of it."""

import pytest

import attnaudit
from attnaudit.errors import UsageError
from attnaudit.records.engine import PROCESS_BYTES

pytest.importorskip("timm")


def test_heads_that_do_not_fit_are_refused_before_they_are_measured(image_folder, tmp_path):
    with pytest.raises(UsageError, match=r"heads of 101 tokens takes about 6\d\d MB here, more than the 600 MB"):
        attnaudit.audit("test_vit", image_folder, random_weights=True, out=tmp_path / "run", memory=PROCESS_BYTES)
    assert not (tmp_path / "run").exists()


def test_memory_changes_neither_numbers_nor_names(image_folder, tmp_path):
    cheap = {"measures": ("procrustes",), "references": ("random_projection",), "claims": (), "limit": 2}
    runs = [
        attnaudit.audit("test_vit", image_folder, random_weights=True, out=tmp_path / size, memory=size, **cheap)
        for size in ("700MB", "64GB")
    ]
    first, second = ({p.name: p.read_bytes() for p in (run.path / "evidence").iterdir()} for run in runs)
    assert first == second
