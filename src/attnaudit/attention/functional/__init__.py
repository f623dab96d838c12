"""The formulas of the attention variants, on `(batch, heads, tokens, dim)` tensors.

Masks follow `F.scaled_dot_product_attention`: a boolean mask is True where a query may see a key, any other mask is
added to the scores; `is_causal` hides later tokens. No function stores a tokens x tokens matrix.
"""

from attnaudit.attention.functional.dot_product import AttentionPass, softmax, symmetric
from attnaudit.attention.functional.explained import unexplained_variance
from attnaudit.attention.functional.ksvd import (
    ScorePair,
    combined_weight,
    kkt_residual,
    ksvd_objective,
    primal,
)
from attnaudit.attention.functional.pursuit import PRESETS, Pursuit, pursue, rpc
from attnaudit.attention.functional.rescaling import rescaled_values, scaled

__all__ = [
    "PRESETS",
    "AttentionPass",
    "Pursuit",
    "ScorePair",
    "combined_weight",
    "kkt_residual",
    "ksvd_objective",
    "primal",
    "pursue",
    "rescaled_values",
    "rpc",
    "scaled",
    "softmax",
    "symmetric",
    "unexplained_variance",
]
