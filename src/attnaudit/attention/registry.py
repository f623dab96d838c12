"""The registry of attention variants."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from attnaudit.attention.base import Attention
from attnaudit.attention.primal import PrimalAttention
from attnaudit.attention.rpc import RPCAttention
from attnaudit.attention.scaled import ScaledAttention
from attnaudit.attention.softmax import SoftmaxAttention
from attnaudit.attention.symmetric import SymmetricAttention
from attnaudit.errors import unknown


@dataclass(frozen=True)
class Variant:
    """An attention variant: its module, formula and citation."""

    name: str
    module: type[Attention]
    formula: str
    citation: str

    @property
    def options(self) -> tuple[str, ...]:
        """The arguments of its module that other attention does not have."""
        parameters = inspect.signature(self.module).parameters.values()
        return tuple(own.name for own in parameters if own.kind is inspect.Parameter.KEYWORD_ONLY)


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("softmax", SoftmaxAttention, "softmax(QKᵀ/√d) V", "Vaswani et al. 2017"),
        Variant("symmetric", SymmetricAttention, "softmax(KKᵀ/√d) V", "Teo & Nguyen 2024 (SymViT)"),
        Variant("scaled", ScaledAttention, "softmax(QKᵀ/√d) (I - S) V", "Teo & Nguyen 2024, Remark 3"),
        Variant(
            "rpc", RPCAttention, "L of K = L + S after n steps, L = softmax(ZZᵀ/√d) V", "Teo & Nguyen 2024, section 3"
        ),
        Variant("primal", PrimalAttention, "Linear([φ(q) W_e; φ(k) W_r])", "Chen et al. 2023"),
    )
}


def variant_named(name: str) -> Variant:
    """The variant of this name.

    Raises:
        UsageError: no variant has this name.
    """
    if name not in VARIANTS:
        raise unknown("attention variant", name, VARIANTS)
    return VARIANTS[name]
