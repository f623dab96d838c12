"""What a theory of values is, and what several of them share."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.numerics.threads import torch_threads
from attnaudit.protocol import Protocol


@typing.runtime_checkable
class Theory(typing.Protocol):
    """What a theory of your own needs; pass an instance to `attnaudit.audit(theories=[…])`.

    It is then measured, compared with references and ranked like the others. It may also have a `guard`
    (`Identifiability`) that says which heads can tell it from chance; without one, heads need 2d tokens.
    """

    @property
    def name(self) -> str:
        """Under which its numbers are stored."""

    @property
    def text(self) -> str:
        """What it says, in a line."""

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """The values it predicts; `spectrum` is that of the keys, solved once for all theories."""


@dataclass(frozen=True)
class Identifiability:
    """Which heads can tell a theory from chance; only they count in a verdict.

    `problems` takes a batch of heads and the spectrum of its keys (for Primal-Attention its kernel), and gives a reason
    for each head that cannot, None for the others.
    """

    text: str
    problems: Callable[[Any, Any], tuple[str | None, ...]]


def too_few_tokens(heads: Heads, spectrum: Spectrum) -> tuple[str | None, ...]:
    """With N < 2d tokens, any d columns of values span a good part of token space."""
    problem = f"N = {heads.tokens} tokens are fewer than 2d = {2 * heads.dim}" if heads.tokens < 2 * heads.dim else None
    return (problem,) * len(heads)


#: Enough for a theory that predicts d columns over tokens.
ENOUGH_TOKENS = Identifiability("N ≥ 2d tokens", too_few_tokens)


def guard_of(theory: Theory) -> Identifiability:
    """The guard a theory declares, or `ENOUGH_TOKENS`."""
    guard: Identifiability = getattr(theory, "guard", ENOUGH_TOKENS)
    return guard


def no_prediction(heads: Heads, reason: str) -> Prediction:
    """Missing values for every head, and why."""
    missing = torch.full(heads.value.shape, torch.nan, dtype=torch.float64, device=heads.value.device)
    return Prediction(missing, torch.zeros_like(missing[:, 0, 0]), (reason,) * len(heads))


def leading_right_vectors(matrix: Tensor, heads: Heads) -> Prediction:
    """The leading right singular vectors of each matrix, over tokens; missing where there are fewer than d."""
    width = min(heads.value.shape[-1], heads.tokens)
    finite = matrix.isfinite().all(dim=-1).all(dim=-1)
    with torch_threads(1):
        _, sizes, right = torch.linalg.svd(matrix.masked_fill(~finite[:, None, None], 0.0), full_matrices=False)
    rounding = sizes[:, :1] * max(matrix.shape[1:]) * torch.finfo(matrix.dtype).eps
    found = (sizes > rounding).sum(dim=-1)
    lost = (found < width) | ~finite
    values = right[:, :width].mT.masked_fill(lost[:, None, None], torch.nan)
    problems = tuple(
        (f"only {rank} of {width} components are above rounding" if usable else "what it predicts from is not finite")
        if missing
        else None
        for rank, missing, usable in zip(found.tolist(), lost.tolist(), finite.tolist(), strict=True)
    )
    return Prediction(values, torch.zeros_like(sizes[:, 0]), problems)
