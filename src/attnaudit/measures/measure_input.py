"""What a measure is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.capture.heads import Heads
from attnaudit.kernel.feature import TokenNorms
from attnaudit.kernel.gram import finite_heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.measures.epsilons import Epsilons, epsilons_of
from attnaudit.measures.key_kernel import KeyKernel, Reasons, first_problem
from attnaudit.measures.shared_work import SharedWork
from attnaudit.protocol import Protocol
from attnaudit.theories.base import Theory, guard_of, impossible, needs_spectrum
from attnaudit.theories.checking import check_prediction
from attnaudit.theories.kernel_pca import KernelPCA

#: Values outside of these bounds have squares that overflow or underflow.
TINY, HUGE = 1e-150, 1e150


@dataclass(frozen=True)
class PredictedValues(SharedWork):
    """What a theory predicts for a batch of heads, shared by the batch and all its references.

    `given` is the prediction if it is known: of a theory that was fitted to other inputs, nobody can predict it here.
    """

    keys: KeyKernel
    theory: Theory
    given: Prediction | None = None

    @property
    def spectrum(self) -> Spectrum | None:
        """That of the keys; None for a theory that does not need it, so that it is not solved."""
        return self.keys.spectrum if needs_spectrum(self.theory) else None

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted values; a head with fewer tokens than value columns has no prediction, of the right shape."""
        heads = self.keys.heads
        if self.given is not None:
            check_prediction(self.theory.name, self.given, heads)
            return self.given
        found = self.theory.predict(heads, cast("Spectrum", self.spectrum), self.keys.protocol)
        check_prediction(self.theory.name, found, heads)
        device = heads.value.device
        found = replace(found, values=found.values.to(device), log_scale=found.log_scale.to(device))
        missing = heads.value.shape[-1] - found.values.shape[-1]
        if missing <= 0:
            return found
        values = torch.full_like(pad(found.values, (0, missing)), torch.nan)
        return replace(found, values=values, problems=("it has fewer tokens than value columns",) * len(values))

    @property
    def epsilons(self) -> Epsilons:
        """What the protocol adds to denominators."""
        return epsilons_of(self.keys.protocol)

    @cached_property
    def complete(self) -> Bool[Tensor, "heads"]:
        """Which heads have a prediction."""
        return finite_heads(self.prediction.values)


@dataclass(frozen=True)
class OwnValues(SharedWork):
    """The values of a batch of heads, as observed or of a reference; shared by all theories they are compared with."""

    heads: Heads
    dtype: torch.dtype = torch.float64

    @cached_property
    def value(self) -> Float[Tensor, "heads tokens dim"]:
        """The values themselves, in the precision in which they are compared."""
        return self.heads.value.to(self.dtype)

    @cached_property
    def parts(self) -> dict[str, Bool[Tensor, "heads"]]:
        """By what is wrong with the others: which heads have finite values of usual size, and finite outputs."""
        size = self.value.abs().amax(dim=(1, 2))
        return {
            "its values are not finite": size.isfinite(),
            "its values are too large or too small for float64": (size == 0) | ((size > TINY) & (size < HUGE)),
            "its outputs are not finite": finite_heads(self.heads.output),
        }


@dataclass(frozen=True)
class MeasureInput(SharedWork):
    """A batch of heads, as observed or with the values of a reference, beside the values a theory predicts.

    `given` is the work on the values of `heads`, where several theories are compared with the same ones.
    """

    heads: Heads
    keys: KeyKernel
    predicted: PredictedValues
    seed: int = 0
    given: OwnValues | None = None

    @cached_property
    def values(self) -> OwnValues:
        """The values of these heads, and work on them that no theory changes."""
        return self.given or OwnValues(self.heads)

    @staticmethod
    def of(heads: Heads, protocol: Protocol = Protocol.EXACT, theory: Theory | None = None) -> MeasureInput:
        """The observed heads against a theory, kernel PCA by default."""
        keys = KeyKernel(heads, protocol)
        return MeasureInput(heads, keys, PredictedValues(keys, theory or KernelPCA()))

    @property
    def prediction(self) -> Prediction:
        """What the theory says the values are."""
        return self.predicted.prediction

    @property
    def epsilons(self) -> Epsilons:
        """What the protocol adds to denominators."""
        return self.predicted.epsilons

    @property
    def kernel_rank(self) -> Int[Tensor, "heads"]:
        """How many eigenvalues of K̃ are above rounding."""
        return self.keys.spectrum.numerical_rank

    @property
    def has_kernel(self) -> Bool[Tensor, "heads"]:
        """Which heads have a kernel whose eigenvalues are known."""
        return self.keys.spectrum.scaled_eigenvalues.isfinite().all(dim=-1)

    @property
    def without_kernel(self) -> tuple[str | None, ...]:
        """Why the others have none."""
        return self.keys.problems

    @cached_property
    def values_as_predicted(self) -> OwnValues:
        """The same in the precision of the prediction."""
        dtype = self.prediction.values.dtype
        return self.values if dtype == self.values.dtype else OwnValues(self.heads, dtype)

    def intact(self, *, keys_only: bool) -> Bool[Tensor, "heads"]:
        """Which heads have finite keys and scale and, if more is asked for, all else finite and not extreme."""
        return self.keys.intact if keys_only else self._all_intact

    def damage(self, *, keys_only: bool) -> tuple[Reasons, Reasons]:
        """Why the others have not: what is wrong with queries and keys, and with values and outputs.

        Values can be missing because a prediction is, so that a measure may know better why.
        """
        if keys_only:
            return first_problem(self.keys.parts, len(self.heads)), (None,) * len(self.heads)
        first = {**self.keys.parts, "its queries are not finite": self.keys.finite_queries}
        last = {**self.values.parts, "its values are all zero": (self.heads.value != 0).any(dim=2).any(dim=1)}
        return first_problem(first, len(self.heads)), first_problem(last, len(self.heads))

    @cached_property
    def _all_intact(self) -> Bool[Tensor, "heads"]:
        parts = (self.keys.intact, self.keys.finite_queries, *self.values.parts.values())
        return torch.stack(parts).all(dim=0)

    @property
    def not_identifiable(self) -> tuple[str | None, ...]:
        """Why a head cannot tell the theory from chance, by the guard of the theory."""
        guard = guard_of(self.predicted.theory)
        return guard.problems(self.keys.heads, self.keys.spectrum if guard.needs_spectrum else None)

    @property
    def impossible(self) -> str | None:
        """Why the theory cannot be true of these heads, by a theorem."""
        return impossible(self.predicted.theory, self.keys.heads)

    @cached_property
    def norms(self) -> TokenNorms:
        """Per-token squared lengths of φ(q) and of the output."""
        return TokenNorms(self.keys.log_phi, self.heads.output.double().square().sum(dim=-1))
