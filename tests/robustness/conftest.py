"""Twelve labelled images on disk."""

import pytest

from tests.robustness.subjects import write_parquet


@pytest.fixture
def data(tmp_path):
    return write_parquet(tmp_path / "data.parquet", count=12)
