"""Everything attnaudit raises on purpose: one sentence that says what was wrong, where, and what to do."""

from __future__ import annotations


class AttnAuditError(Exception):
    """Base of every error a user can cause; the command line prints it as one line and exits with `exit_code`."""

    exit_code = 1


def first_line(error: Exception) -> str:
    """What another's error says, short enough for one sentence of ours."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class UsageError(AttnAuditError):
    """The arguments make no sense together or by themselves."""

    exit_code = 2


class ModelError(AttnAuditError):
    """A model cannot be found or built."""


class WeightsError(AttnAuditError):
    """A weights file cannot be read safely, or does not fit the model."""


class InputError(AttnAuditError):
    """The images or texts cannot be used."""


class CaptureError(AttnAuditError):
    """A model's attention cannot be captured as softmax(QKᵀ·scale + bias)V."""


class ShapeError(AttnAuditError):
    """Tensors do not fit together; the message shows their shapes."""


class NumericalError(AttnAuditError):
    """A result contradicts a theorem, so the computation behind it is wrong."""


class RunFolderError(AttnAuditError):
    """A run folder cannot be written, or belongs to another run."""


class WorkerError(AttnAuditError):
    """A worker process died."""


class MissingExtraError(AttnAuditError):
    """An optional dependency is not installed."""
