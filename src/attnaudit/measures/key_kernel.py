"""What depends on the queries and keys of a batch of heads alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit import kernel
from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel import paper
from attnaudit.kernel.feature import token_norms
from attnaudit.kernel.gram import standardised
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.spectra import Spectrum
from attnaudit.measures.pairs import MOST_TOKENS, too_many_pairs
from attnaudit.measures.shared_work import SharedWork
from attnaudit.protocol import Protocol


def _ignore(solvers: tuple[str, ...]) -> None:
    pass


@dataclass(frozen=True)
class KeyKernel(SharedWork):
    """The kernel of the keys, shared by a batch of heads and all its references.

    `on_solved` receives the name of each head's eigen-solver when the eigenpairs of the keys are solved.
    """

    heads: Heads
    protocol: Protocol = Protocol.EXACT
    on_solved: Callable[[tuple[str, ...]], object] = _ignore

    @property
    def _rank(self) -> int:
        return min(self.heads.value.shape[-1], self.heads.tokens)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of the keys as they are."""
        self._check_length()
        if self.protocol is Protocol.PAPER:
            found = paper.spectrum(self.heads.key, self._rank, by_magnitude=True)
        else:
            found = kernel.spectrum(self.heads.key, self._rank, scale=self.heads.scale)
        self.on_solved(found.solvers)
        return found

    @cached_property
    def standardised_spectrum(self) -> Spectrum:
        """Eigenpairs of the keys standardised token by token."""
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

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Which heads have too few eigenpairs, or none that float32 could represent, and why."""
        return paper.problems(self.spectrum) if self.protocol is Protocol.PAPER else self.unit_axes.problems
