"""The only code that touches a foreign model."""

from attnaudit.capture.capture import Capture, Certificate, capture
from attnaudit.capture.heads import HeadId, Heads
from attnaudit.capture.record import Refusal

__all__ = ["Capture", "Certificate", "HeadId", "Heads", "Refusal", "capture"]
