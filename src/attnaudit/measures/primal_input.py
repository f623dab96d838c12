"""What a measure of Primal-Attention is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Int64
from torch import Tensor

from attnaudit.attention.functional import ScorePair
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.kernel.primal import PrimalKernel, primal_kernel
from attnaudit.measures.shared_work import SharedWork
from attnaudit.theories.registry import PRIMAL_SVD


@dataclass(frozen=True)
class PrimalInput(SharedWork):
    """A batch of Primal heads, as observed or with the weights of a reference, beside the SVD of their kernel."""

    heads: PrimalHeads
    kernel: PrimalKernel

    @staticmethod
    def of(heads: PrimalHeads) -> PrimalInput:
        """The observed heads."""
        return PrimalInput(heads, primal_kernel(heads))

    @cached_property
    def scores(self) -> ScorePair:
        """E and R in the coordinates of the kernel."""
        return self.kernel.scores(self.heads)

    @property
    def kernel_rank(self) -> Int64[Tensor, "heads"]:
        """How many singular values of the kernel are above rounding."""
        return self.kernel.rank

    @property
    def not_identifiable(self) -> tuple[str | None, ...]:
        """Why a head cannot tell a kernel SVD from chance."""
        return PRIMAL_SVD.guard.problems(self.heads, self.kernel)
