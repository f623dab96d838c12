"""Importing timm without torch's compiler, which an audit does not use and which takes twice as long to import as timm.

Two places ask for it: torchvision takes a function that says whether an operator can be compiled, and timm marks
functions that must not be. Both get a stand-in that does the same, and imports the compiler when it is used; whatever
else is asked for imports it at once.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_COMPILER = "torch._dynamo"
_UTILS = "torch._dynamo.utils"


@contextmanager
def deferred_compiler() -> Iterator[None]:
    """Within the block, imports of torch's compiler are put off until it is used; not if it is imported already."""
    if _COMPILER in sys.modules:
        yield
        return
    standins = {
        _COMPILER: _StandIn(_COMPILER, _compiler, {"disable": _disable}),
        _UTILS: _StandIn(_UTILS, _utils, {"is_compile_supported": _is_compile_supported}),
    }
    sys.modules.update(standins)
    try:
        yield
    finally:
        _take_away()


def _take_away() -> None:
    """Let the next import find the compiler itself."""
    for name in (_COMPILER, _UTILS):
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


class _StandIn(ModuleType):
    """A module with a few names of its own; any other is looked up in the module that it stands for."""

    def __init__(self, name: str, real: Callable[[], Any], own: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(own, _real=real)

    def __getattr__(self, name: str) -> Any:
        is_path = name == "__path__" and self.__name__ == _COMPILER  # an import of one of its modules
        if name.startswith("__") and not is_path:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _take_away()
        return getattr(self._real(), name)


def _compiler() -> Any:
    return importlib.import_module(_COMPILER)


def _utils() -> Any:
    return importlib.import_module(_UTILS)


def _is_compile_supported(device_type: str) -> bool:
    return bool(_utils().is_compile_supported(device_type))


def _disable(function: Callable[..., Any] | None = None, recursive: bool = True, **options: Any) -> Callable[..., Any]:
    """A function, marked as one that is not compiled; without one, a decorator."""
    if function is None:
        return functools.partial(_disable, recursive=recursive, **options)

    @functools.wraps(function)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        return _compiler().disable(function, recursive=recursive, **options)(*args, **kwargs)

    vars(uncompiled)["_torchdynamo_disable"] = True  # the compiler looks for it
    return uncompiled
