"""What depends on the queries and keys of a batch of heads alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit import kernel
from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel import paper
from attnaudit.kernel.eigen import leading_eigenvalues
from attnaudit.kernel.feature import token_norms
from attnaudit.kernel.gram import finite_heads, standardised
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.spectra import NO_KERNEL, Spectrum
from attnaudit.measures.pairs import MOST_TOKENS, too_many_pairs
from attnaudit.measures.shared_work import SharedWork
from attnaudit.numerics.products import product
from attnaudit.protocol import Protocol

Reasons = tuple[str | None, ...]


def first_problem(parts: Mapping[str, Bool[Tensor, "heads"]], count: int) -> Reasons:
    """For each head the first of the problems (the keys of `parts`) that it has, or None."""
    reasons: list[str | None] = [None] * count
    for problem, fine in parts.items():
        for place, good in enumerate(fine.tolist()):
            reasons[place] = reasons[place] or (None if good else problem)
    return tuple(reasons)


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

    def among(self, places: Sequence[int]) -> KeyKernel:
        """That of the heads at these places, with their eigenpairs if they are solved."""
        found = KeyKernel(self.heads.among(places), self.protocol)
        if "spectrum" in vars(self):
            vars(found)["spectrum"] = self.spectrum.among(places)
        return found

    @property
    def _rank(self) -> int:
        return min(self.heads.value.shape[-1], self.heads.tokens)

    @cached_property
    def parts(self) -> dict[str, Bool[Tensor, "heads"]]:
        """By what is wrong with the others: which heads have finite keys, and which a finite scale."""
        return {
            "its keys are not finite": finite_heads(self.heads.key),
            "its scale is not finite": self.heads.scale.isfinite(),
        }

    @cached_property
    def intact(self) -> Bool[Tensor, "heads"]:
        """Which heads have both."""
        return torch.stack(list(self.parts.values())).all(dim=0)

    @cached_property
    def finite_queries(self) -> Bool[Tensor, "heads"]:
        """Which heads have finite queries."""
        return finite_heads(self.heads.query)

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
    def standardised_eigenvalues(self) -> tuple[Float[Tensor, "heads rank"], Reasons]:
        """Eigenvalues of the keys standardised token by token, and why a head has none."""
        self._check_length()
        if self.protocol is Protocol.PAPER:
            found = paper.spectrum(standardised(self.heads.key.float()), self._rank)
            return found.eigenvalues, found.problems
        return leading_eigenvalues(standardised(self.heads.key.double()), self._rank)

    def _check_length(self) -> None:
        if self.protocol is Protocol.PAPER and too_many_pairs(self.heads.key):
            raise UsageError(
                f"The paper protocol builds matrices over all pairs of tokens, too many for {self.heads.tokens:,} "
                f"(at most {MOST_TOKENS:,}): use --protocol exact."
            )

    def attended(self, values: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads queries columns"]:
        """What these queries and keys make of any values; the attention is held, unless it is too large."""
        if too_many_pairs(self.heads.key):
            return self.heads.attended(values)
        return product(self.heads.attention(), values.double())

    @cached_property
    def unit_axes(self) -> Prediction:
        """Kernel-PCA values with axes of unit length, which the projection error needs under either protocol."""
        return kernel_pca_values(self.spectrum)

    @cached_property
    def log_phi(self) -> Float[Tensor, "heads queries"]:
        """The logarithm of ‖φ(q)‖² of every query; there is no φ where the scale is negative."""
        if self.protocol is Protocol.PAPER:
            return token_norms(self.heads).log_phi
        scale = self.heads.scale.to(torch.float64)
        return token_norms(self.heads, scale=scale, masked=True).log_phi.masked_fill((scale < 0)[:, None], torch.nan)

    @property
    def without_norms(self) -> Reasons:
        """Why ‖φ(q)‖² of a head is missing, if it is."""
        positive = (self.heads.scale >= 0) | (self.protocol is Protocol.PAPER)
        parts = {NO_KERNEL: positive, "‖φ(q)‖² overflows": self.phi.isfinite().all(dim=-1)}
        return first_problem(parts, len(self.heads))

    @property
    def phi(self) -> Float[Tensor, "heads queries"]:
        """‖φ(q)‖² of every query."""
        return torch.exp(self.log_phi)

    @property
    def problems(self) -> Reasons:
        """Which heads have too few eigenpairs, or none that float32 could represent, and why."""
        return paper.problems(self.spectrum) if self.protocol is Protocol.PAPER else self.unit_axes.problems
