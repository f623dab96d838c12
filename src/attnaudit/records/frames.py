"""Rows as a data frame of pandas or polars, whichever is installed."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import pyarrow as pa

from attnaudit.errors import MissingExtraError


def data_frame(table: pa.Table) -> Any:
    """The table as a data frame of pandas if it is installed, otherwise of polars.

    Raises:
        MissingExtraError: neither is installed.
    """
    with suppress(ModuleNotFoundError):
        importlib.import_module("pandas")
        return table.to_pandas()
    with suppress(ModuleNotFoundError):
        return importlib.import_module("polars").from_arrow(table)
    raise MissingExtraError(
        "A data frame needs pandas or polars, and neither is installed: pip install pandas, or use .evidence, a "
        "pyarrow table."
    )
