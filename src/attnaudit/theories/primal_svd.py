"""Kernel SVD in primal form: what Primal-Attention layers are said to find."""

from __future__ import annotations

from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.kernel.primal import PrimalKernel
from attnaudit.theories.base import Identifiability


def _not_identifiable(heads: PrimalHeads, kernel: PrimalKernel) -> tuple[str | None, ...]:
    """With a kernel of rank ≤ s, any weights span all of its singular vectors."""
    few = f"N = {heads.tokens} tokens are fewer than 2s = {2 * heads.dim}" if heads.tokens < 2 * heads.dim else None
    return tuple(
        few or (f"its kernel has rank {rank}, not above s = {heads.dim}" if rank <= heads.dim else None)
        for rank in kernel.rank.tolist()
    )


class PrimalSVD:
    """Chen et al. (2023, section 4): E and R of a Primal-Attention layer are singular vectors of its own kernel.

    It is about layers without values, so it predicts none: their measures compare E and R with the decomposition
    (`kernel.primal`). Every Primal-Attention layer is measured with it, whatever other theories are named.
    """

    name = "ksvd-primal"
    text = "singular vectors of a Primal-Attention layer's own kernel (Chen et al. 2023)"
    guard = Identifiability("N ≥ 2s tokens and a kernel of rank above s", _not_identifiable)
