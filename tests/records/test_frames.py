"""Rows as a data frame of whichever library is installed."""

import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from attnaudit.errors import MissingExtraError
from attnaudit.records.frames import data_frame

ROWS = pa.table({"layer": [0, 1], "value": [0.5, None]})


def test_pandas_is_used_if_it_is_installed():
    pandas = pytest.importorskip("pandas")
    frame = data_frame(ROWS)
    assert isinstance(frame, pandas.DataFrame)
    assert frame["layer"].tolist() == [0, 1]


def test_polars_is_used_if_pandas_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("polars", table)))
    assert data_frame(ROWS) == ("polars", ROWS)


def test_without_either_the_error_says_what_to_do(monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pandas or polars.*pip install pandas, or use \.evidence"):
        data_frame(ROWS)
