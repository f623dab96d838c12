"""Eigenpairs of the centred, normalised Gram matrix K̃ of a head's keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnaudit.errors import NumericalError, ShapeError
from attnaudit.kernel.graded import graded_eigenpairs
from attnaudit.kernel.gram import Keys, PerHead, PerToken, Square, centred, normalised_gram, temperature
from attnaudit.kernel.implicit import ImplicitKernel, implicit_gram
from attnaudit.kernel.krylov import Ritz, leading_eigenpairs
from attnaudit.kernel.solvers import Backend, chosen, eigenpairs
from attnaudit.notebook import html_table

BOUND_SLACK = 1e-9
#: Relative accuracy asked of the smallest kept eigenvalue before a dearer solver is called.
ACCURACY = 1e-6
#: Tokens up to which a head that does not converge is solved in full; above, it is lost, with this word for its solver.
DENSE_AT_LAST = 4096
UNCONVERGED = "not converged"


@dataclass(frozen=True, repr=False)
class Spectrum:
    """The leading eigenpairs of K̃ = exp(log_scale) · `operator`, largest first.

    Attributes:
        scaled_eigenvalues: eigenvalues of `operator`; μ = exp(log_scale) · these.
        eigenvectors: unit length, one per column; their signs are arbitrary.
        log_scale: what was divided out of the matrix to keep it in range.
        log_mass: log g_i, the logarithm of each token's kernel row sum.
        operator: the matrix itself, or for long inputs what multiplies like it.
        numerical_rank: how many of all computed eigenvalues stand above rounding; a solver that does not compute all
            of them computes more than it is asked for, so that this tells whether there are more.
        solvers: by which solver each head was solved, the last one if several were tried.
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
            ("of its bound", f"{self.bound_ratio.min():.3g} … {self.bound_ratio.max():.3g}"),
            ("rank of the kernel", f"{self.numerical_rank.min()} … {self.numerical_rank.max()}"),
        ]
        return html_table(repr(self), rows if len(largest) else [])

    @property
    def eigenvalues(self) -> Float[Tensor, "heads rank"]:
        """μ, the eigenvalues of K̃ itself (N times those of the feature covariance)."""
        return self.scaled_eigenvalues * torch.exp(self.log_scale)[:, None]

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Why a head has no eigenpairs, where it has none."""
        return tuple("its eigenpairs did not converge" if s == UNCONVERGED else None for s in self.solvers)

    @cached_property
    def residual(self) -> PerHead:
        """max_m ‖K̃a_m - μ_m a_m‖ / μ_m: an eigenvalue is off by at most that share of itself."""
        return _residual(self.times(self.eigenvectors), self.scaled_eigenvalues, self.eigenvectors)

    def times(self, vectors: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens columns"]:
        """K̃ / exp(log_scale) times columns, in their precision."""
        operator = self.operator
        return (operator.to(vectors.dtype) if isinstance(operator, Tensor) else operator) @ vectors

    def image(self, vectors: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens columns"]:
        """K̃ times columns; underflows to zero where the keys are huge."""
        return self.times(vectors) * torch.exp(self.log_scale).to(vectors.dtype)[:, None, None]

    @property
    def matrix(self) -> Square:
        """K̃ at its own scale, where it was built; underflows to zero where the keys are huge."""
        if not isinstance(self.operator, Tensor):
            raise ShapeError(f"K̃ of {self.log_mass.shape[1]} tokens was never built: multiply with it by `times`.")
        return self.operator * torch.exp(self.log_scale)[:, None, None]

    @property
    def bound_ratio(self) -> PerHead:
        """μ₁ · min_i g_i, which is in (0, 1] for every set of keys.

        K_φ = D^-½ S D^-½ with D = diag(g) and S similar to a stochastic matrix, so μ₁ ≤ ‖K_φ‖ ≤ 1/min g; centring
        does not increase it.
        """
        log_largest = torch.log(self.scaled_eigenvalues[:, 0]) + self.log_scale
        return torch.exp(log_largest + self.log_mass.amin(dim=-1))


def spectrum(keys: Keys, rank: int | None = None, *, scale: PerHead | None = None, backend: str = "auto") -> Spectrum:
    """The `rank` leading eigenpairs (the head's width by default) for keys of any size and number, in float64.

    `backend` is one of `attnaudit.kernel.solvers.BACKENDS`; `auto` chooses by device and size. Heads that a Krylov
    solver leaves with a residual above `ACCURACY` are solved in full up to `DENSE_AT_LAST` tokens and lost above, and
    heads whose kernel spans more orders of magnitude than float64 has digits are solved by `attnaudit.kernel.graded`;
    `solvers`, `residual` and `problems` of the result say so.

    Raises:
        NumericalError: an eigenvalue exceeds its provable bound, which only a faulty solver can bring about.
    """
    kept = rank_for(keys, rank)
    solver = chosen(backend, keys.shape[1], kept, keys.device) if len(keys) else "dense"
    if solver in ("subspace", "matrix-free"):
        result = _by_krylov(keys, kept, scale, solver)
    else:
        gram = normalised_gram(keys, scale)
        matrix = centred(gram.matrix)
        values, vectors = eigenpairs(matrix, solver)
        result = from_ascending(matrix, values, vectors, kept, gram.log_scale, gram.log_mass, solver)
    if isinstance(result.operator, Tensor):
        result = _with_graded_heads(result, keys, scale)
    if (result.bound_ratio > 1 + BOUND_SLACK).any():
        worst = result.bound_ratio.nan_to_num().amax().item()
        raise NumericalError(f"The largest eigenvalue came out {worst:.6f} times its bound 1/min g: solver failure.")
    return result


def _by_krylov(keys: Keys, rank: int, scale: PerHead | None, solver: Backend) -> Spectrum:
    """With the matrix or without; heads that are not finite are solved as zeros and lost afterwards."""
    finite = keys.isfinite().all(dim=-1).all(dim=-1)
    usable = keys.masked_fill(~finite[:, None, None], 0.0)
    operator: Square | ImplicitKernel
    if solver == "matrix-free":
        operator, log_scale, log_mass = implicit_gram(usable, scale)
    else:
        gram = normalised_gram(usable, scale)
        operator, log_scale, log_mass = centred(gram.matrix), gram.log_scale, gram.log_mass
    found = leading_eigenpairs(operator, usable, rank)
    result = from_ritz(operator, found, rank, log_scale, log_mass, solver)
    slow = (found.residual > ACCURACY) & (result.numerical_rank > 0)
    if slow.any() and keys.shape[1] <= DENSE_AT_LAST:
        result = _with_dense_heads(result, usable, scale, slow)
        slow = torch.zeros_like(slow)
    lost = slow | ~finite
    solvers = tuple(UNCONVERGED if s else name for s, name in zip(slow.tolist(), result.solvers, strict=True))
    return replace(
        result,
        scaled_eigenvalues=result.scaled_eigenvalues.masked_fill(lost[:, None], torch.nan),
        eigenvectors=result.eigenvectors.masked_fill(lost[:, None, None], torch.nan),
        numerical_rank=result.numerical_rank.masked_fill(lost, 0),
        solvers=solvers,
    )


def _with_dense_heads(spectrum: Spectrum, keys: Keys, scale: PerHead | None, slow: Bool[Tensor, "heads"]) -> Spectrum:
    """The spectrum with those heads solved in full, one by one, whose Krylov iteration did not converge."""
    rank = spectrum.scaled_eigenvalues.shape[1]
    for head in slow.nonzero().flatten().tolist():
        one = slice(head, head + 1)
        gram = normalised_gram(keys[one], None if scale is None else scale[one])
        matrix = centred(gram.matrix)
        dense = from_ascending(matrix, *eigenpairs(matrix), rank, gram.log_scale, gram.log_mass, "dense")
        spectrum = _replaced(spectrum, torch.arange(len(keys), device=keys.device) == head, dense)
    return spectrum


def _replaced(spectrum: Spectrum, where: Tensor, other: Spectrum) -> Spectrum:
    changed = {}
    for name in ("scaled_eigenvalues", "eigenvectors", "numerical_rank"):
        changed[name] = getattr(spectrum, name).clone()
        changed[name][where] = getattr(other, name)
    solvers = list(spectrum.solvers)
    for place, solver in zip(where.nonzero().flatten().tolist(), other.solvers, strict=True):
        solvers[place] = solver
    return replace(spectrum, **changed, solvers=tuple(solvers))


def _with_graded_heads(spectrum: Spectrum, keys: Keys, scale: PerHead | None) -> Spectrum:
    """The spectrum with those heads replaced whose smaller eigenvalues drowned in the rounding of the largest."""
    rank = spectrum.scaled_eigenvalues.shape[1]
    uncertain = spectrum.scaled_eigenvalues[:, -1] * ACCURACY < _rounding(
        spectrum.scaled_eigenvalues[:, 0], keys.shape[1]
    )
    uncertain &= spectrum.numerical_rank > 0
    if rank >= keys.shape[1] or not uncertain.any():  # centring leaves N - 1 eigenpairs at most
        return spectrum
    values, vectors = spectrum.scaled_eigenvalues.clone(), spectrum.eigenvectors.clone()
    ranks, solvers = spectrum.numerical_rank.clone(), list(spectrum.solvers)
    factors = temperature(keys.double(), scale).flatten().tolist()
    for head in uncertain.nonzero().flatten().tolist():
        solved = graded_eigenpairs(keys[head].double().numpy(force=True), factors[head])
        if solved is not None:
            values[head] = values.new_tensor(solved[0][:rank])
            vectors[head] = vectors.new_tensor(solved[1][:, :rank])
            ranks[head] = int((solved[0] > torch.finfo(torch.float64).tiny).sum())
            solvers[head] = "graded"
    return replace(
        spectrum, scaled_eigenvalues=values, eigenvectors=vectors, numerical_rank=ranks, solvers=tuple(solvers)
    )


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
    noise = _rounding(values.abs().amax(dim=-1, keepdim=True), values.shape[-1])
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
    """A `Spectrum` from the leading eigenpairs and some more."""
    noise = _rounding(found.values[:, :1].clamp_min(1), log_mass.shape[1])  # the largest entry of the matrix is 1
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
    """max_m ‖K̃a_m - μ_m a_m‖ / μ_m, by rounding at most for an eigenvalue that is rounding itself."""
    floor = _rounding(values[:, :1].abs(), vectors.shape[1])
    error: Tensor = torch.linalg.vector_norm(images - vectors * values[:, None, :], dim=1)
    return (error / torch.maximum(values.abs(), floor)).amax(dim=-1)


def _rounding(largest: Tensor, tokens: int) -> Tensor:
    """How far an eigenvalue of an ordinary solver may be off."""
    return largest * tokens * torch.finfo(largest.dtype).eps


def rank_for(keys: Keys, rank: int | None) -> int:
    """How many eigenpairs to keep: as asked, or the head's width, and never more than there are tokens."""
    if rank is not None and not 1 <= rank <= keys.shape[1]:
        raise ShapeError(f"rank is {rank}, but a head of {keys.shape[1]} tokens has 1 to {keys.shape[1]} eigenpairs.")
    return min(keys.shape[2], keys.shape[1]) if rank is None else rank
