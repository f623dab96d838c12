"""What a measure of Primal-Attention is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Int64
from torch import Tensor

from attnaudit.attention.functional import ScorePair
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.kernel.primal import PrimalKernel, finite_primal, primal_kernel
from attnaudit.measures.key_kernel import Reasons, first_problem
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

    @cached_property
    def has_kernel(self) -> Bool[Tensor, "heads"]:
        """Which heads have a kernel whose singular values are known."""
        return self.kernel.values.isfinite().all(dim=-1)

    @property
    def without_kernel(self) -> Reasons:
        """Why the others have none."""
        return first_problem({"its kernel overflows": self.has_kernel}, len(self.heads))

    def intact(self, *, keys_only: bool) -> Bool[Tensor, "heads"]:
        """Which heads hold nothing but numbers."""
        return finite_primal(self.heads)

    def damage(self, *, keys_only: bool) -> tuple[Reasons, Reasons]:
        """Why a head has no numbers, if there is a reason that the guard of a measure does not know."""
        nothing = (None,) * len(self.heads)
        return nothing, first_problem(
            {"queries, keys or weights are not finite": self.intact(keys_only=False)}, len(self.heads)
        )

    @property
    def not_identifiable(self) -> tuple[str | None, ...]:
        """Why a head cannot tell a kernel SVD from chance."""
        return PRIMAL_SVD.guard.problems(self.heads, self.kernel)
