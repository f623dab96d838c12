"""Choose the eigensolver for a problem, and small solvers built on it."""

from __future__ import annotations

import typing

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import UsageError, unknown
from attnaudit.kernel import cusolver
from attnaudit.kernel.gram import PerHead, PerToken, Square, finite_heads
from attnaudit.numerics.products import product, squares
from attnaudit.numerics.threads import torch_threads

#: `dense`: all eigenpairs, by LAPACK, or torch's solver on a GPU. `batched`: all eigenpairs of many matrices at once,
#: by cuSOLVER. `subspace`: block Krylov on the matrix. `matrix-free`: the same without the matrix.
Backend = typing.Literal["dense", "batched", "subspace", "matrix-free"]
BACKENDS: tuple[Backend, ...] = typing.get_args(Backend)
#: With more tokens than this, the matrix is not built.
LARGE = 2048
#: X counts as having independent columns if all diagonal entries of its Cholesky factor are above this share of the
#: largest.
_DEPENDENT = 1e-5
#: A singular value above this share of the largest is as good from AᵀA as from A, to some nine digits.
_WELL_SEPARATED = 1e-3
#: The same for a singular value that is summed with all others.
_ACCURATE = 1e-6
#: How often what is known is taken out of a matrix, and the residual up to which singular vectors count as found.
_ROUNDS, _RESIDUAL = 4, 1e-10
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


def eigenvalues(matrix: Square) -> PerToken:
    """All eigenvalues, ascending; NaN for a matrix that is not finite."""
    finite = finite_heads(matrix)
    usable = matrix if finite.all() else matrix.masked_fill(~finite[:, None, None], 0.0)
    with torch_threads(1):
        found = cusolver.batched_eigvalsh(usable) if cusolver.available(matrix) else torch.linalg.eigvalsh(usable)
    return found if usable is matrix else found.masked_fill(~finite[:, None], torch.nan)


def singular_values(matrix: Float[Tensor, "heads rows columns"]) -> Float[Tensor, "heads values"]:
    """All singular values, largest first; NaN for a matrix that is not finite.

    They are the roots of the eigenvalues of MᵀM, which takes less time than a decomposition of M. On a CPU a matrix is
    decomposed if some are so small that they would be inaccurate. On a GPU, where that is far slower, values below 1e-8
    of the largest stay so, which does not affect sums and means.
    """
    smaller = squares(matrix if matrix.shape[2] <= matrix.shape[1] else matrix.mT)
    found = eigenvalues(smaller).flip(-1).clamp_min(0).sqrt()
    small = found[:, -1] < _ACCURATE * found[:, 0]
    if not matrix.is_cuda and small.any():
        found[small] = torch.linalg.svdvals(matrix[small])
    return found


def right_singular_vectors(
    matrix: Float[Tensor, "heads rows columns"], count: int
) -> tuple[Float[Tensor, "heads values"], Float[Tensor, "heads values columns"]]:
    """Singular values, largest first, and right singular vectors, as rows; the first `count` are accurate.

    Of a tall matrix from the eigenpairs of AᵀA, in a fraction of the time. Their error is that of the singular values
    squared, so where the last that counts is too small beside the first, more is done: on a GPU, where to decompose the
    matrix itself takes a hundred times as long, by `_deflated`, on a CPU by `_completed`. Only matrices for which that
    is not enough are decomposed.
    """
    if matrix.shape[1] < matrix.shape[2]:
        return _decomposed(matrix)
    sizes, right = _of_products(matrix)
    small = ~(sizes[:, count - 1] > _WELL_SEPARATED * sizes[:, 0])
    if not small.any():
        return sizes, right
    if cusolver.available(matrix):
        sizes[small], right[small] = _deflated(matrix[small], sizes[small], right[small], count)
        small = _residual(matrix, sizes[:, :count], right[:, :count]) > _RESIDUAL
    else:
        for place in small.nonzero().flatten().tolist():
            completed = _completed(matrix[place], sizes[place], right[place], count)
            if completed is not None:
                sizes[place], right[place] = completed
                small[place] = False
    if small.any():
        sizes[small], right[small] = _decomposed(matrix[small])
    return sizes, right


def _completed(
    matrix: Float[Tensor, "rows columns"],
    sizes: Float[Tensor, "columns"],
    right: Float[Tensor, "columns columns"],
    count: int,
) -> tuple[Tensor, Tensor] | None:
    """Singular values and vectors that are small beside the first, from A on the complement of the large ones.

    In the complement the first of them is large: AV₂ = U₂S₂W with V₂ its basis that is known already has the singular
    vectors WV₂. None if there, too, the last that counts is too small.
    """
    known = int((sizes > _WELL_SEPARATED * sizes[0]).sum())
    rest = right[known:]
    others, turned = _of_products(product(matrix, rest.mT)[None])
    if not others[0, count - 1 - known] > _WELL_SEPARATED * others[0, 0]:
        return None
    return torch.cat([sizes[:known], others[0]]), torch.cat([right[:known], product(turned[0], rest)])


def _decomposed(matrix: Float[Tensor, "heads rows columns"]) -> tuple[Tensor, Tensor]:
    with torch_threads(1):
        _, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
    return sizes, right


def _of_products(matrix: Float[Tensor, "heads rows columns"]) -> tuple[Tensor, Tensor]:
    sizes, vectors = eigenpairs(squares(matrix))
    return sizes.flip(-1).clamp_min(0).sqrt(), vectors.mT.flip(-2)


def _deflated(matrix: Tensor, sizes: Tensor, right: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Singular values and vectors that are small beside the first, from what the large ones leave of the matrix.

    A - AVVᵀ, V those that are known, has all the others, which are large in it; its rounding error is that of A, as in
    any decomposition. Each round makes another three orders of magnitude accurate.
    """
    places = torch.arange(matrix.shape[2], device=matrix.device)
    rounding = sizes[:, 0] * max(matrix.shape[1:]) * torch.finfo(matrix.dtype).eps
    known = (sizes > _WELL_SEPARATED * sizes[:, :1]).sum(dim=-1)
    for _ in range(_ROUNDS):
        following = sizes.gather(1, known.clamp_max(len(places) - 1)[:, None])[:, 0]
        if ((known >= count) | (following < rounding)).all():
            break
        kept = right * (places < known[:, None])[:, :, None]
        rest = matrix - (matrix @ kept.mT) @ kept
        other_sizes, other = _of_products(rest - (rest @ kept.mT) @ kept)  # twice, against rounding error
        late, later = places >= known[:, None], (places - known[:, None]).clamp_min(0)
        sizes = other_sizes.gather(1, later).where(late, sizes)
        right = other.gather(1, later[:, :, None].expand_as(other)).where(late[:, :, None], right)
        known = known + (other_sizes > _WELL_SEPARATED * other_sizes[:, :1]).sum(dim=-1).clamp_min(1)
    return sizes, right


def _residual(matrix: Tensor, sizes: Tensor, right: Tensor) -> PerHead:
    """How far the images Av_m are from being orthogonal to each other and to what they leave of A.

    As a share of σ_1 times the larger singular value: rounding error, if the vectors are as good as those of a
    decomposition. Those with singular values below rounding are not looked at.
    """
    above = sizes > sizes[:, :1] * max(matrix.shape[1:]) * torch.finfo(matrix.dtype).eps
    right = right * above[:, :, None]
    images = matrix @ right.mT
    products = images.mT @ images
    products.diagonal(dim1=-2, dim2=-1).zero_()
    within = products.abs() / torch.maximum(sizes[:, :, None], sizes[:, None])
    beyond = torch.linalg.vector_norm(images.mT @ (matrix - images @ right), dim=2) / sizes
    worst = torch.maximum(within.amax(dim=(1, 2)), beyond.where(above, 0).amax(dim=1))
    return worst / sizes[:, 0]


def orthonormal_basis(columns: Float[Tensor, "heads tokens columns"]) -> Float[Tensor, "heads tokens basis"]:
    """An orthonormal basis of the span of the columns.

    On a GPU XR⁻¹ with the Cholesky factor R of XᵀX, twice against rounding error. On a CPU, and where columns are
    almost dependent so that this would lose digits, Householder QR.
    """
    if not columns.is_cuda or columns.shape[1] < columns.shape[2]:
        basis: Tensor = torch.linalg.qr(columns)[0]
        return basis
    result, poor = columns, torch.zeros(len(columns), dtype=torch.bool, device=columns.device)
    for _ in range(2):
        factor, failed = torch.linalg.cholesky_ex(result.mT @ result, upper=True)
        sizes = factor.diagonal(dim1=-2, dim2=-1)
        poor |= (failed != 0) | ~(sizes.amin(dim=-1) > _DEPENDENT * sizes.amax(dim=-1))
        result = torch.linalg.solve_triangular(factor, result, upper=True, left=False)
    if poor.any():
        result[poor] = torch.linalg.qr(columns[poor])[0]
    return result
