"""What a measure is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.capture.heads import Heads
from attnaudit.kernel.feature import TokenNorms
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.epsilons import Epsilons, epsilons_of
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.shared_work import SharedWork
from attnaudit.protocol import Protocol
from attnaudit.theories.base import Theory, guard_of
from attnaudit.theories.kernel_pca import KernelPCA


@dataclass(frozen=True)
class PredictedValues(SharedWork):
    """What a theory predicts for a batch of heads, shared by the batch and all its references."""

    keys: KeyKernel
    theory: Theory

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted values; a head with fewer tokens than value columns has no prediction, of the right shape."""
        device = self.keys.heads.value.device
        found = self.theory.predict(self.keys.heads, self.keys.spectrum, self.keys.protocol)
        found = replace(found, values=found.values.to(device), log_scale=found.log_scale.to(device))
        missing = self.keys.heads.value.shape[-1] - found.values.shape[-1]
        if missing <= 0:
            return found
        values = torch.full_like(pad(found.values, (0, missing)), torch.nan)
        return replace(found, values=values, problems=("it has fewer tokens than value columns",) * len(values))


@dataclass(frozen=True)
class MeasureInput(SharedWork):
    """A batch of heads, as observed or with the values of a reference, beside the values a theory predicts."""

    heads: Heads
    keys: KeyKernel
    predicted: PredictedValues
    seed: int = 0

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
        return epsilons_of(self.keys.protocol)

    @property
    def kernel_rank(self) -> Int[Tensor, "heads"]:
        """How many eigenvalues of K̃ are above rounding."""
        return self.keys.spectrum.numerical_rank

    @property
    def not_identifiable(self) -> tuple[str | None, ...]:
        """Why a head cannot tell the theory from chance, by the guard of the theory."""
        return guard_of(self.predicted.theory).problems(self.keys.heads, self.keys.spectrum)

    @cached_property
    def norms(self) -> TokenNorms:
        """Per-token squared lengths of φ(q) and of the output."""
        return TokenNorms(self.keys.log_phi, self.heads.output.double().square().sum(dim=-1))
