"""What a theory of values is, and what several of them share."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.gram import finite_heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import right_singular_vectors
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.ties import problems_of_ties


@typing.runtime_checkable
class Theory(typing.Protocol):
    """What a theory of your own needs; pass an instance to `attnaudit.audit(theories=[…])`.

    It is then measured, compared with references and ranked like the others. It may also have a `guard`
    (`Identifiability`) that says which heads can tell it from chance; without one, heads need 2d tokens. And it may
    have an `impossible`, a function from a batch of heads to the reason why it cannot be true of any of them, by a
    theorem, or None: such heads are not scored. With `needs_spectrum = False` it is given None instead of a spectrum,
    which then need not be solved.
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
    for each head that cannot, None for the others. Unless it `needs_spectrum`, it is given None instead, because
    eigenpairs take most of the time.
    """

    text: str
    problems: Callable[[Any, Any], tuple[str | None, ...]]
    needs_spectrum: bool = True


def too_few_tokens(heads: Heads, spectrum: Spectrum | None) -> tuple[str | None, ...]:
    """With N < 2d tokens, any d columns of values span a good part of token space: d is the width of the values."""
    least = 2 * heads.value.shape[-1]
    problem = f"N = {heads.tokens} tokens are fewer than 2d = {least}" if heads.tokens < least else None
    return (problem,) * len(heads)


#: Enough for a theory that predicts d columns over tokens.
ENOUGH_TOKENS = Identifiability("N ≥ 2d tokens", too_few_tokens, needs_spectrum=False)


def guard_of(theory: Theory) -> Identifiability:
    """The guard a theory declares, or `ENOUGH_TOKENS`."""
    guard: Identifiability = getattr(theory, "guard", ENOUGH_TOKENS)
    return guard


def impossible(theory: Theory, heads: Heads) -> str | None:
    """Why a theory cannot be true of these heads, whatever their weights; None if it can."""
    theorem: Callable[[Heads], str | None] | None = getattr(theory, "impossible", None)
    return None if theorem is None else theorem(heads)


_NO_VALUES = "kernel PCA of what each token of a causal head sees leaves only V = 0, in every gauge"


def forces_zero_values(heads: Heads) -> str | None:
    """Kernel PCA of what each token of a causal head sees leaves V = 0 alone, in every gauge.

    Eigenvectors of a centred matrix are orthogonal to 1, and V = GA, so that Σ_{j≤i} g_j v_j = 0 for the keys up to
    every i: v₁ = 0, then v₂ = 0, and so on (docs/theory/causal.md).
    """
    return _NO_VALUES if heads.causal else None


def needs_spectrum(theory: Theory) -> bool:
    """Whether it predicts from the spectrum of the keys."""
    return bool(getattr(theory, "needs_spectrum", True))


def same_in_every_gauge(theory: Theory) -> bool:
    """Whether it predicts the same however queries and keys are rescaled or mixed, as long as attention stays."""
    return bool(getattr(theory, "same_in_every_gauge", False))


def is_fitted(theory: Theory) -> bool:
    """Whether it has parameters that are fitted to other inputs, so that it predicts nothing head by head."""
    return bool(getattr(theory, "fitted", False))


def no_prediction(heads: Heads, reason: str) -> Prediction:
    """Missing values for every head, and why."""
    missing = torch.full(heads.value.shape, torch.nan, dtype=torch.float64, device=heads.value.device)
    return Prediction(missing, torch.zeros_like(missing[:, 0, 0]), (reason,) * len(heads))


def leading_right_vectors(matrix: Tensor, heads: Heads) -> Prediction:
    """The d leading right singular vectors of each matrix, over tokens; missing where fewer are there, or tied."""
    width = min(heads.value.shape[-1], heads.tokens)
    finite = finite_heads(matrix)
    usable = matrix if finite.all() else matrix.masked_fill(~finite[:, None, None], 0.0)
    sizes, right = right_singular_vectors(usable, width)
    rounding = sizes[:, :1] * max(matrix.shape[1:]) * torch.finfo(matrix.dtype).eps
    found = (sizes > rounding).sum(dim=-1)
    problems = tuple(
        "what it predicts from is not finite"
        if not usable
        else f"only {rank} of {width} components are above rounding"
        if rank < width
        else tied
        for usable, rank, tied in zip(
            finite.tolist(), found.tolist(), problems_of_ties(sizes[:, :width], "singular values"), strict=True
        )
    )
    lost = torch.tensor([problem is not None for problem in problems], device=right.device)
    values = right[:, :width].mT.masked_fill(lost[:, None, None], torch.nan)
    return Prediction(values, torch.zeros_like(sizes[:, 0]), problems)
