"""Products with an orthonormal basis of a span, mostly without the basis.

For X = QR the coordinates of other columns B in the basis Q are QᵀB = R⁻ᵀ(XᵀB): a product and a small triangular matrix
are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.kernel.solvers import orthonormal_basis
from attnaudit.numerics.products import product, squares

#: Columns are independent enough if the diagonal entries of R are above this share of the largest: the error of QᵀB is
#: then some 1e-10.
_INDEPENDENT = 1e-3


@dataclass(frozen=True)
class Span:
    """The columns X, R of X = QR as the Cholesky factor of XᵀX, and Q of those heads for which that loses digits.

    With more columns than tokens all heads have a basis.
    """

    columns: Float[Tensor, "heads tokens columns"]
    factor: Float[Tensor, "heads columns columns"]
    poor: Bool[Tensor, "heads"]
    bases: Float[Tensor, "poor tokens rank"]

    @staticmethod
    def of(columns: Float[Tensor, "heads tokens columns"]) -> Span:
        """Of columns of similar size."""
        factor, failed = torch.linalg.cholesky_ex(squares(columns), upper=True)
        sizes = factor.diagonal(dim1=-2, dim2=-1)
        poor = (failed != 0) | ~(sizes.amin(dim=-1) > _INDEPENDENT * sizes.amax(dim=-1))
        if columns.shape[1] < columns.shape[2]:
            poor = torch.ones_like(poor)
        return Span(columns, factor, poor, orthonormal_basis(columns[poor]) if poor.any() else columns[:0])

    def coordinates(self, other: Float[Tensor, "heads tokens others"]) -> Float[Tensor, "heads rank others"]:
        """QᵀB of other columns B; NaN where X or B is not finite."""
        if len(self.bases) == len(self.columns):
            return product(self.bases.mT, other)
        found: Tensor = torch.linalg.solve_triangular(self.factor.mT, product(self.columns.mT, other), upper=False)
        if len(self.bases):
            found[self.poor] = product(self.bases.mT, other[self.poor])
        return found
