"""Compute the leading eigenpairs of the centred, normalised Gram matrix K̃ of a head's keys."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.errors import NumericalError, ShapeError
from attnaudit.kernel.graded import graded_eigenpairs
from attnaudit.kernel.gram import Keys, PerHead, Square, centred, check_keys, normalised_gram, temperature
from attnaudit.kernel.implicit import ImplicitKernel, implicit_gram
from attnaudit.kernel.krylov import leading_eigenpairs
from attnaudit.kernel.solvers import Backend, chosen, eigenpairs, eigenvalues
from attnaudit.kernel.spectra import (
    INDEFINITE,
    NOT_FINITE,
    UNCONVERGED,
    Spectrum,
    from_ascending,
    from_ritz,
    rounding,
)

BOUND_SLACK = 1e-9
#: Relative accuracy required of the smallest kept eigenvalue; below it a slower, more accurate solver is used.
ACCURACY = 1e-6
#: Up to this many tokens, a head that does not converge is solved in full; with more it has no eigenpairs.
LARGEST_DENSE = 4096


def spectrum(keys: Keys, rank: int | None = None, *, scale: PerHead | None = None, backend: str = "auto") -> Spectrum:
    """The `rank` leading eigenpairs of each head, in float64; by default as many as the head has dimensions.

    `backend` is one of `attnaudit.kernel.solvers.BACKENDS`; `auto` chooses by device and size. If a Krylov solver
    leaves a head with a residual above `ACCURACY`, the head is solved in full up to `LARGEST_DENSE` tokens, and has no
    eigenpairs above. A head whose kernel spans more orders of magnitude than float64 has digits is solved by
    `attnaudit.kernel.graded`. A head whose kernel is not finite, or whose scale is negative, has no eigenpairs.
    `solvers`, `residual` and `problems` of the result show which case applied.

    Raises:
        NumericalError: an eigenvalue exceeds its provable bound, so the solver is at fault.
    """
    check_keys(keys, scale)
    kept = rank_for(keys, rank)
    solver = chosen(backend, keys.shape[1], kept, keys.device) if len(keys) else "dense"
    lost = _without_kernel(keys, scale)
    if any(lost):
        usable = torch.tensor([reason is None for reason in lost], device=keys.device)
        keys = keys.masked_fill(~usable[:, None, None], 0.0)
        scale = None if scale is None else scale.where(usable, 1.0)
        return _without(_solved(keys, kept, scale, solver), lost)
    return _solved(keys, kept, scale, solver)


def leading_eigenvalues(
    keys: Keys, rank: int | None = None, *, scale: PerHead | None = None
) -> tuple[Float[Tensor, "heads rank"], tuple[str | None, ...]]:
    """μ of the pairs that `spectrum` finds, in half the time, and why a head has none."""
    kept = rank_for(keys, rank)
    whole = len(keys) > 0 and chosen("auto", keys.shape[1], kept, keys.device) in ("dense", "batched")
    if not whole or any(_without_kernel(keys, scale)):
        found = spectrum(keys, rank, scale=scale)
        return found.eigenvalues, found.problems
    gram = normalised_gram(keys, scale)
    values = eigenvalues(centred(gram.matrix))[:, -kept:].flip(-1)
    if (uncertain := _uncertain(values, keys.shape[1])).any():
        again = spectrum(keys[uncertain], rank, scale=None if scale is None else scale[uncertain])
        values[uncertain] = again.scaled_eigenvalues
    return values * torch.exp(gram.log_scale)[:, None], (None,) * len(keys)


def _without_kernel(keys: Keys, scale: PerHead | None) -> tuple[str | None, ...]:
    """Why a head has no kernel: by Cauchy and Schwarz, all scale·x·y are finite if those with x = y are."""
    factors = temperature(keys.double(), scale)[:, 0]
    finite = (keys.double().square().sum(dim=-1) * factors).isfinite().all(dim=-1)
    return tuple(
        NOT_FINITE if not usable else INDEFINITE if negative else None
        for usable, negative in torch.stack([finite, factors[:, 0] < 0], dim=1).tolist()
    )


def _without(spectrum: Spectrum, lost: tuple[str | None, ...]) -> Spectrum:
    """The spectrum with no eigenpairs for the lost heads, which were solved as if their keys were zero."""
    where = torch.tensor([reason is not None for reason in lost], device=spectrum.log_scale.device)
    return replace(
        spectrum,
        scaled_eigenvalues=spectrum.scaled_eigenvalues.masked_fill(where[:, None], torch.nan),
        eigenvectors=spectrum.eigenvectors.masked_fill(where[:, None, None], torch.nan),
        log_scale=spectrum.log_scale.masked_fill(where, torch.nan),
        log_mass=spectrum.log_mass.masked_fill(where[:, None], torch.nan),
        numerical_rank=spectrum.numerical_rank.masked_fill(where, 0),
        solvers=tuple(reason or solver for reason, solver in zip(lost, spectrum.solvers, strict=True)),
    )


def _solved(keys: Keys, kept: int, scale: PerHead | None, solver: Backend) -> Spectrum:
    """The spectrum of heads that all have a kernel."""
    if solver in ("subspace", "matrix-free"):
        result = _by_krylov(keys, kept, scale, solver)
    else:
        gram = normalised_gram(keys, scale)
        matrix = centred(gram.matrix)
        values, vectors = eigenpairs(matrix, solver)
        result = from_ascending(matrix, values, vectors, kept, gram.log_scale, gram.log_mass, solver)
        noise = rounding(values.new_ones(()), keys.shape[1])  # the largest entry of K is 1
        result = replace(result, numerical_rank=result.numerical_rank.masked_fill(values[:, -1] <= noise, 0))
    if isinstance(result.operator, Tensor):
        result = _with_graded_heads(result, keys, scale)
    if (result.bound_ratio > 1 + BOUND_SLACK).any():
        worst = result.bound_ratio.nan_to_num().amax().item()
        raise NumericalError(f"The largest eigenvalue is {worst:.6f} times its bound 1/min g: the solver failed.")
    return result


def _by_krylov(keys: Keys, rank: int, scale: PerHead | None, solver: Backend) -> Spectrum:
    """Solve with or without the matrix."""
    operator: Square | ImplicitKernel
    if solver == "matrix-free":
        operator, log_scale, log_mass = implicit_gram(keys, scale)
    else:
        gram = normalised_gram(keys, scale)
        operator, log_scale, log_mass = centred(gram.matrix), gram.log_scale, gram.log_mass
    found = leading_eigenpairs(operator, keys, rank)
    result = from_ritz(operator, found, rank, log_scale, log_mass, solver)
    slow = (found.residual > ACCURACY) & (result.numerical_rank > 0)
    if slow.any() and keys.shape[1] <= LARGEST_DENSE:
        result = _with_dense_heads(result, keys, scale, slow)
        slow = torch.zeros_like(slow)
    solvers = tuple(UNCONVERGED if s else name for s, name in zip(slow.tolist(), result.solvers, strict=True))
    return replace(
        result,
        scaled_eigenvalues=result.scaled_eigenvalues.masked_fill(slow[:, None], torch.nan),
        eigenvectors=result.eigenvectors.masked_fill(slow[:, None, None], torch.nan),
        numerical_rank=result.numerical_rank.masked_fill(slow, 0),
        solvers=solvers,
    )


def _with_dense_heads(spectrum: Spectrum, keys: Keys, scale: PerHead | None, slow: Bool[Tensor, "heads"]) -> Spectrum:
    """The spectrum with the `slow` heads, whose Krylov iteration did not converge, solved in full one by one."""
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
    """The spectrum with heads solved again whose small eigenvalues are lost in the rounding error of the largest."""
    rank = spectrum.scaled_eigenvalues.shape[1]
    uncertain = _uncertain(spectrum.scaled_eigenvalues, keys.shape[1]) & (spectrum.numerical_rank > 0)
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


def _uncertain(values: Float[Tensor, "heads rank"], tokens: int) -> Bool[Tensor, "heads"]:
    """Whether the smallest eigenvalue that is kept has too few digits left beside the largest."""
    return values[:, -1] * ACCURACY < rounding(values[:, 0], tokens)


def rank_for(keys: Keys, rank: int | None) -> int:
    """The number of eigenpairs to keep: `rank`, or by default the head's dimension, at most the number of tokens."""
    if rank is not None and not (isinstance(rank, int) and 1 <= rank <= keys.shape[1]):
        raise ShapeError(f"rank must be an integer from 1 to {keys.shape[1]}, the number of tokens, got {rank}.")
    return min(keys.shape[2], keys.shape[1]) if rank is None else rank
