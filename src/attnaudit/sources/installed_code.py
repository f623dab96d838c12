"""Which code is that of an installed package, and which is a user's own."""

from __future__ import annotations

import functools
import importlib.util
import sysconfig
import types
from pathlib import Path
from typing import Any

import torch

_INSTALLED = (
    "<frozen",
    str(Path(__file__).parents[1]),  # this package, wherever it is
    str(Path(torch.__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


def is_installed_file(name: str) -> bool:
    """Whether a file of code is part of an installed package or of Python."""
    return name.startswith(_INSTALLED) or "site-packages" in name or "dist-packages" in name


def is_of_another_package(value: Any) -> bool:
    """Whether this is a function of an installed package other than torch."""
    return (
        isinstance(value, types.FunctionType)
        and is_installed_file(value.__code__.co_filename)
        and value.__module__.partition(".")[0] != "torch"
    )


@functools.cache
def is_installed_module(name: str) -> bool:
    """Whether a module is part of an installed package or of Python."""
    try:
        found = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):  # ValueError: __main__ of a script
        return False
    return found is not None and (found.origin == "built-in" or is_installed_file(found.origin or ""))
