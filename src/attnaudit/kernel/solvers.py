"""Choose the eigensolver for a problem, and small solvers built on it."""

from __future__ import annotations

import typing

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import UsageError, unknown
from attnaudit.kernel import cusolver
from attnaudit.kernel.gram import PerToken, Square, finite_heads
from attnaudit.numerics.threads import torch_threads

#: `dense`: all eigenpairs, by LAPACK, or torch's solver on a GPU. `batched`: all eigenpairs of many matrices at once,
#: by cuSOLVER. `subspace`: block Krylov on the matrix. `matrix-free`: the same without the matrix.
Backend = typing.Literal["dense", "batched", "subspace", "matrix-free"]
BACKENDS: tuple[Backend, ...] = typing.get_args(Backend)
#: With more tokens than this, the matrix is not built.
LARGE = 2048
#: X counts as having independent columns if λ_min/λ_max of XᵀX is above this.
_DEPENDENT = 1e-10
#: With more tokens than this, computing only the leading eigenpairs is cheaper than computing all.
MIDDLE = 768


def chosen(backend: str, tokens: int, rank: int, device: torch.device) -> Backend:
    """The backend for heads of this size on this device, or the requested one.

    Krylov methods need a space several times as wide as the rank; with fewer tokens, all eigenpairs are computed.
    """
    if backend not in ("auto", *BACKENDS):
        raise unknown("eigensolver", backend, ("auto", *BACKENDS))
    if backend != "auto":
        return typing.cast(Backend, backend)
    if tokens > max(LARGE, 8 * rank):
        return "matrix-free"
    if tokens > max(MIDDLE, 8 * rank):
        return "subspace"
    return "batched" if cusolver.available(torch.empty(0, dtype=torch.float64, device=device)) else "dense"


def eigenpairs(matrix: Square, backend: Backend | None = None) -> tuple[PerToken, Square]:
    """All eigenpairs, ascending, by `batched` if possible, else by `dense`; NaN for a matrix that is not finite."""
    finite = finite_heads(matrix)
    solve = cusolver.batched_eigh if _batched(matrix, backend) else torch.linalg.eigh
    with torch_threads(1):
        if finite.all():
            values, vectors = solve(matrix)
        else:
            values, vectors = matrix.new_full(matrix.shape[:2], torch.nan), torch.full_like(matrix, torch.nan)
            values[finite], vectors[finite] = solve(matrix[finite])
    return values, vectors


def _batched(matrix: Square, backend: Backend | None) -> bool:
    possible = cusolver.available(matrix)
    if backend == "batched" and not possible:
        raise UsageError("The batched eigensolver needs an NVIDIA GPU and cuSOLVER from CUDA 12.6 or later.")
    return possible and backend != "dense"


def singular_values(matrix: Float[Tensor, "heads rows columns"]) -> Float[Tensor, "heads values"]:
    """All singular values, largest first; NaN for a matrix that is not finite.

    On a GPU they come from the eigenvalues of MᵀM, by a batched solver. Values below 1e-8 of the largest are then
    inaccurate, which does not affect sums and means.
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

    On a GPU X(XᵀX)^-½, applied twice against rounding error, by a batched solver. On a CPU, and where columns are
    almost dependent so that this would lose digits, Householder QR.
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
