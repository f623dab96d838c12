"""The library transformers: imported when it is needed, and silent while it works for us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attnaudit.extras import optional


def the_library() -> Any:
    """transformers, or an error that says how to install it."""
    return optional("transformers", "hf", "A Hugging Face model")


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Without progress bars and reports: what matters of them is in our notes and errors."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
