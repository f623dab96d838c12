"""The leading eigenpairs of K̃ of many heads, built from the result of a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnaudit.display import html_table
from attnaudit.errors import ShapeError
from attnaudit.kernel.gram import PerHead, PerToken, Square
from attnaudit.kernel.implicit import ImplicitKernel
from attnaudit.kernel.krylov import Ritz
from attnaudit.numerics.products import product

#: Listed as the solver of heads without eigenpairs: no solver converged, the kernel is not finite, or it is no kernel.
UNCONVERGED, NOT_FINITE, INDEFINITE = "not converged", "not finite", "indefinite"
NO_KERNEL = "its scale is negative, so that exp(scale·x·y) is not a kernel"
_PROBLEMS = {
    UNCONVERGED: "its eigenpairs did not converge",
    NOT_FINITE: "its keys or scale are not finite, or so large that their kernel overflows",
    INDEFINITE: NO_KERNEL,
}


@dataclass(frozen=True, repr=False)
class Spectrum:
    """The leading eigenpairs of K̃ = exp(log_scale) · `operator`, largest first.

    Attributes:
        scaled_eigenvalues: eigenvalues of `operator`; μ = exp(log_scale) · these.
        eigenvectors: unit length, one per column; their signs are arbitrary.
        log_scale: the logarithm of the factor divided out of the matrix to keep it in range.
        log_mass: log g_i, the logarithm of each token's kernel row sum.
        operator: the matrix itself, or, for long inputs, an object that multiplies like it.
        numerical_rank: the number of computed eigenvalues above rounding error; a solver that does not compute all of
            them computes more than requested, so that this number can exceed the rank.
        solvers: the solver of each head; the last one if several were tried.
    """

    scaled_eigenvalues: Float[Tensor, "heads rank"]
    eigenvectors: Float[Tensor, "heads tokens rank"]
    log_scale: PerHead
    log_mass: PerToken
    operator: Square | ImplicitKernel
    numerical_rank: Int[Tensor, "heads"]
    solvers: tuple[str, ...]

    def __repr__(self) -> str:
        heads, rank = self.scaled_eigenvalues.shape
        solvers = ", ".join(f"{self.solvers.count(name)} {name}" for name in dict.fromkeys(self.solvers))
        return f"Spectrum({heads} heads x {rank} eigenpairs of {self.log_mass.shape[1]} tokens; {solvers})"

    def _repr_html_(self) -> str:
        largest = self.eigenvalues[:, 0]
        rows = [
            ("largest eigenvalue", f"{largest.min():.3g} … {largest.max():.3g}"),
            ("as a share of its bound", f"{self.bound_ratio.min():.3g} … {self.bound_ratio.max():.3g}"),
            ("kernel rank", f"{self.numerical_rank.min()} … {self.numerical_rank.max()}"),
        ]
        return html_table(repr(self), rows if len(largest) else [])

    def among(self, places: Sequence[int]) -> Spectrum:
        """Those of the heads at these places."""
        chosen = list(places)
        return Spectrum(
            self.scaled_eigenvalues[chosen],
            self.eigenvectors[chosen],
            self.log_scale[chosen],
            self.log_mass[chosen],
            self.operator[chosen] if isinstance(self.operator, Tensor) else self.operator.among(chosen),
            self.numerical_rank[chosen],
            tuple(self.solvers[place] for place in chosen),
        )

    @property
    def eigenvalues(self) -> Float[Tensor, "heads rank"]:
        """μ, the eigenvalues of K̃ itself (N times those of the feature covariance)."""
        return self.scaled_eigenvalues * torch.exp(self.log_scale)[:, None]

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Why a head has no eigenpairs, or None if it has."""
        return tuple(map(_PROBLEMS.get, self.solvers))

    @cached_property
    def residual(self) -> PerHead:
        """max_m ‖K̃a_m - μ_m a_m‖ / μ_m, a bound on the relative error of the eigenvalues."""
        return _residual(self.times(self.eigenvectors), self.scaled_eigenvalues, self.eigenvectors)

    def times(self, vectors: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens columns"]:
        """K̃ / exp(log_scale) @ vectors, in the precision of the vectors."""
        operator = self.operator
        return product(operator.to(vectors.dtype), vectors) if isinstance(operator, Tensor) else operator @ vectors

    def image(self, vectors: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens columns"]:
        """K̃ @ vectors; underflows to zero if the keys are very large."""
        return self.times(vectors) * torch.exp(self.log_scale).to(vectors.dtype)[:, None, None]

    @property
    def matrix(self) -> Square:
        """K̃ at its own scale, if it was built; underflows to zero if the keys are very large."""
        if not isinstance(self.operator, Tensor):
            raise ShapeError(f"K̃ of {self.log_mass.shape[1]} tokens was not built: use `times` to multiply by it.")
        return self.operator * torch.exp(self.log_scale)[:, None, None]

    @property
    def bound_ratio(self) -> PerHead:
        """μ₁ · min_i g_i, which lies in (0, 1] for all keys.

        K_φ = D^-½ S D^-½ with D = diag(g) and S similar to a stochastic matrix, so μ₁ ≤ ‖K_φ‖ ≤ 1/min g; centring
        does not increase it.
        """
        log_largest = torch.log(self.scaled_eigenvalues[:, 0]) + self.log_scale
        return torch.exp(log_largest + self.log_mass.amin(dim=-1))


def from_ascending(
    matrix: Square,
    values: PerToken,
    vectors: Float[Tensor, "heads tokens columns"],
    rank: int,
    log_scale: PerHead,
    log_mass: PerToken,
    solver: str,
) -> Spectrum:
    """A `Spectrum` from all eigenvalues in ascending order and at least the last `rank` eigenvectors."""
    noise = rounding(values.abs().amax(dim=-1, keepdim=True), values.shape[-1])
    kept_values, kept_vectors = values[:, -rank:].flip(-1), vectors[:, :, -rank:].flip(-1)
    return Spectrum(
        scaled_eigenvalues=kept_values,
        eigenvectors=kept_vectors,
        log_scale=log_scale,
        log_mass=log_mass,
        operator=matrix,
        numerical_rank=(values > noise).sum(dim=-1),
        solvers=(solver,) * len(values),
    )


def from_ritz(
    operator: Square | ImplicitKernel, found: Ritz, rank: int, log_scale: PerHead, log_mass: PerToken, solver: str
) -> Spectrum:
    """A `Spectrum` from at least the `rank` leading eigenpairs."""
    noise = rounding(found.values[:, :1].clamp_min(1), log_mass.shape[1])  # the largest entry of the matrix is 1
    return Spectrum(
        scaled_eigenvalues=found.values[:, :rank],
        eigenvectors=found.vectors[:, :, :rank],
        log_scale=log_scale,
        log_mass=log_mass,
        operator=operator,
        numerical_rank=(found.values > noise).sum(dim=-1),
        solvers=(solver,) * len(found.values),
    )


def _residual(images: Tensor, values: Tensor, vectors: Tensor) -> PerHead:
    """max_m ‖K̃a_m - μ_m a_m‖ / μ_m, where μ_m counts as at least the rounding error."""
    floor = rounding(values[:, :1].abs(), vectors.shape[1])
    error: Tensor = torch.linalg.vector_norm(images - vectors * values[:, None, :], dim=1)
    return (error / torch.maximum(values.abs(), floor)).amax(dim=-1)


def rounding(largest: Tensor, tokens: int) -> Tensor:
    """The rounding error of an eigenvalue computed by an ordinary solver."""
    return largest * tokens * torch.finfo(largest.dtype).eps
