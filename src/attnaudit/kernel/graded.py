"""Eigenpairs of K̃ for keys so large that its entries span more orders of magnitude than float64 has digits.

An ordinary symmetric solver is accurate relative to the *largest* eigenvalue, so small ones are lost in rounding
error. But K_φ is a well-conditioned matrix between two diagonal ones,

    K_φ = D C D,    D_ii = exp(scale·‖k_i‖²/2) / g_i,    C_ij = exp(-scale·‖k_i - k_j‖²/2),

and for such matrices Cholesky's C = LLᵀ followed by a one-sided Jacobi SVD of D L (rows sorted by D) finds *every*
eigenvalue to almost full relative accuracy (Demmel & Veselić 1992; Drmač & Veselić 2008, LAPACK's `dgejsv`). Centring
becomes a product with an orthonormal basis of the complement of 1, which keeps that structure.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert, lapack

Matrix = NDArray[np.float64]

#: Smallest squared Cholesky pivot of C; below it tokens are too similar for the promised accuracy.
SMALLEST_PIVOT = 1e-8
_ROW_AND_COLUMN_GRADED, _WITH_VECTORS, _WITHOUT_VECTORS = 2, 0, 3


def graded_eigenpairs(keys: Matrix, scale: float) -> tuple[Matrix, Matrix] | None:
    """All non-zero eigenvalues of K̃ / max K_φ, largest first, and eigenvectors; None if tokens are almost equal."""
    scores = keys @ keys.T * scale
    log_diagonal = np.diag(scores) / 2 - np.logaddexp.reduce(scores, axis=1)
    order = np.argsort(-log_diagonal, kind="stable")
    ordered, log_diagonal = keys[order], log_diagonal[order]
    squares = np.square(ordered[:, None, :] - ordered[None, :, :]).sum(axis=-1)
    try:
        factor = np.linalg.cholesky(np.exp(squares * (-scale / 2)))
    except np.linalg.LinAlgError:
        return None
    if np.square(np.diag(factor)).min() < SMALLEST_PIVOT:
        return None
    complement = helmert(len(keys))  # (N-1) x N, orthonormal rows, orthogonal to 1
    graded = np.exp(log_diagonal - log_diagonal[0])[:, None] * factor
    singular, _, right, work, _, info = lapack.dgejsv(
        (complement[:, order] @ graded).T,
        joba=_ROW_AND_COLUMN_GRADED,
        jobu=_WITHOUT_VECTORS,
        jobv=_WITH_VECTORS,
    )
    if info != 0:
        return None
    values = np.square(singular * (work[0] / work[1]))
    descending = np.argsort(-values, kind="stable")
    return values[descending], complement.T @ right[:, descending]
