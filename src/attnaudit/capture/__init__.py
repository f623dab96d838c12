"""The only code that touches a foreign model; `attnaudit.capture(…)` calls its function `capture`."""

from attnaudit.capture.attention_call import Refusal
from attnaudit.capture.capture import capture
from attnaudit.capture.heads import Heads
from attnaudit.capture.result import Capture, Certificate
from attnaudit.records.head_id import HeadId

__all__ = ["Capture", "Certificate", "HeadId", "Heads", "Refusal", "capture"]
