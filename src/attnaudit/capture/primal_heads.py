"""What a forward pass leaves of Primal-Attention layers, which have neither softmax nor values."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attnaudit.records.head_id import HeadId


@dataclass(frozen=True)
class PrimalHeads:
    """A batch of heads of Primal-Attention: φ of queries and keys, F = f(X), the weights, and Λ in `singular`."""

    query: Float[Tensor, "heads tokens dim"]
    key: Float[Tensor, "heads tokens dim"]
    rows: Float[Tensor, "heads rows dim"]
    weight_e: Float[Tensor, "heads rows rank"]
    weight_r: Float[Tensor, "heads rows rank"]
    singular: Float[Tensor, "heads rank"]
    index: tuple[HeadId, ...]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """N."""
        return self.query.shape[1]

    @property
    def dim(self) -> int:
        """s, the number of columns of E and R, which is what is compared here; not the width of the queries."""
        return self.weight_e.shape[2]
