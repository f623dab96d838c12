"""What torch's compiler says where it cannot compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attnaudit.errors import AttnAuditError, first_line


@contextmanager
def compile_errors() -> Iterator[None]:
    """Around passes of a network that may be compiled: it is when it is first called, backward included.

    Raises:
        AttnAuditError: it cannot be, such as without a C++ compiler.
    """
    try:
        yield
    except RuntimeError as error:
        from torch._dynamo.exc import TorchDynamoException  # slow to import, unless something was compiled

        if not isinstance(error, TorchDynamoException):
            raise
        reason = getattr(error, "inner_exception", error)
        raise AttnAuditError(
            f"The network cannot be compiled here ({first_line(reason)}): repeat the command without --compile."
        ) from error
