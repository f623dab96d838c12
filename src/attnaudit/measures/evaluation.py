"""Everything the measures of one batch of heads share, computed once and only if asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from attnaudit import kernel
from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel import paper
from attnaudit.kernel.feature import TokenNorms, token_norms
from attnaudit.kernel.gram import standardised
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.spectra import Spectrum
from attnaudit.measures.cka import RowGeometry
from attnaudit.measures.guards import Guards, guards_of
from attnaudit.measures.pairs import MOST_TOKENS, REASON, too_many_pairs
from attnaudit.measures.subspace import orthonormal
from attnaudit.protocol import Protocol
from attnaudit.theories.registry import KernelPCA, Theory


@dataclass(frozen=True)
class KeySide:
    """What depends on queries and keys alone, and is therefore shared by a head and all its references."""

    heads: Heads
    protocol: Protocol = Protocol.EXACT

    @property
    def _rank(self) -> int:
        return min(self.heads.value.shape[-1], self.heads.tokens)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the keys as they are."""
        self._check_length()
        if self.protocol is Protocol.PAPER:
            return paper.spectrum(self.heads.key, self._rank, by_magnitude=True)
        return kernel.spectrum(self.heads.key, self._rank, scale=self.heads.scale)

    @cached_property
    def standardised_spectrum(self) -> Spectrum:
        """Of the keys standardised token by token."""
        self._check_length()
        if self.protocol is Protocol.PAPER:
            return paper.spectrum(standardised(self.heads.key.float()), self._rank)
        return kernel.spectrum(standardised(self.heads.key.double()), self._rank)

    def _check_length(self) -> None:
        if self.protocol is Protocol.PAPER and too_many_pairs(self.heads.key):
            raise UsageError(
                f"The paper protocol builds matrices over all pairs of tokens, too many for {self.heads.tokens:,} "
                f"(at most {MOST_TOKENS:,}): use --protocol exact."
            )

    @cached_property
    def unit_axes(self) -> Prediction:
        """Kernel-PCA values with axes of unit length, which the projection error needs under either protocol."""
        return kernel_pca_values(self.spectrum)

    @cached_property
    def log_phi(self) -> Float[Tensor, "heads queries"]:
        """The logarithm of ‖φ(q)‖² of every query."""
        scale = None if self.protocol is Protocol.PAPER else self.heads.scale.to(torch.float64)
        return token_norms(self.heads, scale=scale).log_phi

    @property
    def phi(self) -> Float[Tensor, "heads queries"]:
        """‖φ(q)‖² of every query."""
        return torch.exp(self.log_phi)

    def predict(self, theory: Theory) -> TheorySide:
        """What a theory says the values are, once a measure asks."""
        return TheorySide(self, theory)

    @property
    def solvers(self) -> tuple[str, ...]:
        """The eigen-solver of each head, if any was needed."""
        return self.spectrum.solvers if "spectrum" in self.__dict__ else ()

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Which heads have no spectrum, or none that float32 could represent, and why."""
        if "spectrum" not in self.__dict__:
            return (None,) * len(self.heads)
        return paper.problems(self.spectrum) if self.protocol is Protocol.PAPER else self.spectrum.problems


@dataclass(frozen=True)
class TheorySide:
    """A prediction with what the measures derive from it alone, shared by a head and all its references."""

    keys: KeySide
    theory: Theory

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted values; a head with fewer tokens than value columns has no prediction, of the right shape."""
        found = self.theory.predict(self.keys.heads, self.keys.spectrum, self.keys.protocol)
        missing = self.keys.heads.value.shape[-1] - found.values.shape[-1]
        if missing <= 0:
            return found
        values = torch.full_like(pad(found.values, (0, missing)), torch.nan)
        return replace(found, values=values, problems=("it has fewer tokens than value columns",) * len(values))

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Why a head has no prediction, as far as it was asked for."""
        asked = "prediction" in self.__dict__
        return self.prediction.problems if asked else (None,) * len(self.keys.heads)

    @cached_property
    def rows(self) -> RowGeometry:
        """Gram matrices of the predicted values, for CKA."""
        return RowGeometry(self.prediction.values)

    @cached_property
    def basis(self) -> Float[Tensor, "heads tokens dim"]:
        """An orthonormal basis of the predicted columns."""
        return orthonormal(self.prediction.values.double())


@dataclass(frozen=True)
class Evaluation:
    """A batch of heads (observed, or with the values of a reference) beside the values a theory predicts."""

    heads: Heads
    keys: KeySide
    theory: TheorySide
    seed: int = 0

    @staticmethod
    def of(heads: Heads, protocol: Protocol = Protocol.EXACT, theory: Theory | None = None) -> Evaluation:
        """The observed heads against a theory, kernel PCA by default."""
        keys = KeySide(heads, protocol)
        return Evaluation(heads, keys, keys.predict(theory or KernelPCA()))

    @property
    def prediction(self) -> Prediction:
        """What the theory says the values are."""
        return self.theory.prediction

    @property
    def rows(self) -> RowGeometry:
        """Gram matrices of the values, in the arithmetic of the prediction."""
        return RowGeometry(self.heads.value.to(self.prediction.values.dtype))

    @property
    def guards(self) -> Guards:
        """What the protocol adds to denominators."""
        return guards_of(self.keys.protocol)

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Why a head cannot be measured, where a reason is known."""
        known = tuple(a or b for a, b in zip(self.keys.problems, self.theory.problems, strict=True))
        return tuple(problem or REASON for problem in known) if too_many_pairs(self.heads.key) else known

    @property
    def norms(self) -> TokenNorms:
        """Per-token squared lengths of φ(q) and of the output."""
        return TokenNorms(self.keys.log_phi, self.heads.output.double().square().sum(dim=-1))
