"""Which optimisers timm has, and which of them work here."""

from __future__ import annotations

import difflib

import torch

from attnaudit.errors import UsageError, first_line
from attnaudit.extras import optional


def check_optimiser(name: str) -> None:
    """Fail, naming what is spelled almost like it, unless timm has the optimiser and what that needs is installed."""
    timm = optional("timm.optim", "timm", "Training")
    known = timm.list_optimizers()
    if name.removeprefix("lookahead_") not in known:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "adamw, lamb and sgd are among those it has."
        raise UsageError(f"optimiser: timm has no optimiser {name!r}: {hint}")
    try:
        timm.create_optimizer_v2([torch.nn.Parameter(torch.zeros(1, 1))], opt=name, lr=1.0)
    except (ImportError, AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(f"optimiser: timm cannot make {name!r} here ({first_line(error)}): take adamw.") from error
