"""Packages that can be called as the function of the same name: `attnaudit.audit(…)`, `attnaudit.capture(…)`.

The first import of a subpackage sets its name in `attnaudit`, so a function of that name would be overwritten. The
package therefore answers the call itself, while `attnaudit/__init__.py` shows type checkers the function.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def make_callable(package: str, home: str) -> None:
    """Send calls of `package` to the function of the same name in the module `home`, imported on the first call."""
    name = package.rpartition(".")[2]

    class CallablePackage(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(importlib.import_module(home), name)(*args, **kwargs)

    sys.modules[package].__class__ = CallablePackage
