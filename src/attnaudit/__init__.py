"""attnaudit puts what papers claim about self-attention to the test, on any transformer, with references.

>>> import attnaudit
>>> run = attnaudit.audit(model, batch)            # doctest: +SKIP
>>> heads = attnaudit.capture(model, batch).heads  # doctest: +SKIP

Names are imported when first used, so that `import attnaudit` and `attnaudit --help` do not load torch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError

if TYPE_CHECKING:
    from attnaudit import attention, gaussian, kernel, measures, training
    from attnaudit.api.atlas import atlas
    from attnaudit.api.audits import audit
    from attnaudit.api.costs import cost
    from attnaudit.api.judging import diff, judge
    from attnaudit.api.papers import paper
    from attnaudit.api.reports import report
    from attnaudit.api.robustness import corrupt, robust
    from attnaudit.api.runs import Run, open
    from attnaudit.api.trainings import train
    from attnaudit.capture import Capture, Heads, capture
    from attnaudit.protocol import Protocol

_PACKAGES = ("attention", "audit", "capture", "cost", "gaussian", "kernel", "measures", "report", "training")
_HOMES = {
    "Capture": "attnaudit.capture",
    "Heads": "attnaudit.capture",
    "Protocol": "attnaudit.protocol",
    "Run": "attnaudit.api.runs",
    "atlas": "attnaudit.api.atlas",
    "corrupt": "attnaudit.api.robustness",
    "diff": "attnaudit.api.judging",
    "judge": "attnaudit.api.judging",
    "open": "attnaudit.api.runs",
    "paper": "attnaudit.api.papers",
    "robust": "attnaudit.api.robustness",
    "train": "attnaudit.api.trainings",
}
#: Packages that can be called as the function of the same name, and where it lives. Type checkers see the function.
_FUNCTIONS = {
    "audit": "attnaudit.api.audits",
    "capture": "attnaudit.capture.capture",
    "cost": "attnaudit.api.costs",
    "report": "attnaudit.api.reports",
}

__all__ = [
    "AttnAuditError",
    "Capture",
    "Heads",
    "Protocol",
    "Run",
    "__version__",
    "atlas",
    "attention",
    "audit",
    "capture",
    "corrupt",
    "cost",
    "diff",
    "gaussian",
    "judge",
    "kernel",
    "measures",
    "open",
    "paper",
    "report",
    "robust",
    "train",
    "training",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"attnaudit.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _callable(name: str) -> type[ModuleType]:
    class CallablePackage(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(importlib.import_module(_FUNCTIONS[name]), name)(*args, **kwargs)

    return CallablePackage


class _FrontDoor(ModuleType):
    """This package. The first import of a subpackage sets its name here, so it is made callable then."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value.__class__ = _callable(name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
