"""Which eigen-solver takes which problem."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.kernel import cusolver
from attnaudit.kernel.gram import PerToken, Square, finite_heads

#: `dense`: LAPACK, or torch's solver on a GPU, all eigenpairs. `batched`: cuSOLVER, all eigenpairs of many matrices at
#: once. `subspace`: block Krylov on the matrix. `matrix-free`: the same without the matrix.
Backend = typing.Literal["dense", "batched", "subspace", "matrix-free"]
BACKENDS: tuple[Backend, ...] = typing.get_args(Backend)
#: More tokens than this, and the matrix is not built.
LARGE = 2048
#: Smallest share of the largest eigenvalue of XᵀX at which X still has independent columns for its purpose.
_DEPENDENT = 1e-10
#: More tokens than this, and the leading eigenpairs come cheaper than all of them.
MIDDLE = 768


def chosen(backend: str, tokens: int, rank: int, device: torch.device) -> Backend:
    """The backend for heads of a size on a device, or the one that was asked for.

    Krylov methods need a space several times as wide as the rank; where that is not there, all eigenpairs are found.
    """
    if backend not in ("auto", *BACKENDS):
        raise UsageError(f"There is no eigen-solver {backend!r}; there is auto, {', '.join(BACKENDS)}.")
    if backend != "auto":
        return typing.cast(Backend, backend)
    if tokens > max(LARGE, 8 * rank):
        return "matrix-free"
    if tokens > max(MIDDLE, 8 * rank):
        return "subspace"
    return "batched" if cusolver.available(torch.empty(0, dtype=torch.float64, device=device)) else "dense"


def eigenpairs(matrix: Square, backend: Backend | None = None) -> tuple[PerToken, Square]:
    """All eigenpairs, ascending; NaN for a matrix that is not finite. `dense`, or `batched` where that is possible."""
    finite = finite_heads(matrix)
    solve = cusolver.batched_eigh if _batched(matrix, backend) else torch.linalg.eigh
    with one_thread():
        if finite.all():
            values, vectors = solve(matrix)
        else:
            values, vectors = matrix.new_full(matrix.shape[:2], torch.nan), torch.full_like(matrix, torch.nan)
            values[finite], vectors[finite] = solve(matrix[finite])
    return values, vectors


def _batched(matrix: Square, backend: Backend | None) -> bool:
    possible = cusolver.available(matrix)
    if backend == "batched" and not possible:
        raise UsageError("The batched eigen-solver needs an NVIDIA GPU and cuSOLVER of CUDA 12.6 or later.")
    return possible and backend != "dense"


def singular_values(matrix: Float[Tensor, "heads rows columns"]) -> Float[Tensor, "heads values"]:
    """All singular values, largest first; NaN for a matrix that is not finite.

    On a GPU by the eigenvalues of MᵀM, which a batched solver finds; values below 1e-8 of the largest are lost, which
    no sum or mean of them sees.
    """
    finite = finite_heads(matrix)
    usable = matrix.masked_fill(~finite[:, None, None], 0.0)
    if cusolver.available(usable):
        smaller = usable.mT @ usable if usable.shape[2] <= usable.shape[1] else usable @ usable.mT
        found = eigenpairs(smaller)[0].flip(-1).clamp_min(0).sqrt()
    else:
        found = torch.linalg.svdvals(usable)
    return found.masked_fill(~finite[:, None], torch.nan)


def orthonormal_basis(columns: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens basis"]:
    """An orthonormal basis of the span of the columns.

    On a GPU X(XᵀX)^-½, twice for rounding, which a batched solver finds; by Householder's method where that loses
    digits, because columns almost depend on each other, and on a CPU.
    """
    if not cusolver.available(columns) or columns.shape[1] < columns.shape[2]:
        basis: Tensor = torch.linalg.qr(columns)[0]
        return basis
    values, vectors = eigenpairs(columns.mT @ columns)
    poor = ~(values[:, 0] > _DEPENDENT * values[:, -1])
    result = columns @ (vectors * values.clamp_min(torch.finfo(values.dtype).tiny).rsqrt()[:, None, :])
    values, vectors = eigenpairs(result.mT @ result)
    result = result @ (vectors * values.clamp_min(torch.finfo(values.dtype).tiny).rsqrt()[:, None, :])
    if poor.any():
        result[poor] = torch.linalg.qr(columns[poor])[0]
    return result


@contextmanager
def one_thread() -> Iterator[None]:
    """Small batched LAPACK calls are slower on several CPU threads than on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
