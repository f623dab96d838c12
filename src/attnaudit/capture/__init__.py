"""The only code that touches a foreign model.

`attnaudit.capture` is this package and, called, its main function: both names are what a user expects.
"""

import sys
from types import ModuleType
from typing import Any

from attnaudit.capture.capture import capture
from attnaudit.capture.captured import Capture, Certificate
from attnaudit.capture.heads import Heads
from attnaudit.capture.record import Refusal
from attnaudit.records.head_id import HeadId

__all__ = ["Capture", "Certificate", "HeadId", "Heads", "Refusal", "capture"]


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Capture:
        return capture(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
