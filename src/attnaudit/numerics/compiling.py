"""What torch's compiler says where it cannot compile."""

from __future__ import annotations

import sys
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
        compiler = sys.modules.get("torch._dynamo.exc")  # not there unless something is compiled, and slow to import
        if compiler is None or not isinstance(error, compiler.TorchDynamoException):
            raise
        reason = getattr(error, "inner_exception", error)
        raise AttnAuditError(
            f"The network cannot be compiled here ({first_line(reason)}): repeat the command without --compile."
        ) from error
