"""The limit for measures that compare every token with every other."""

from __future__ import annotations

from torch import Tensor

#: With more tokens, a matrix over pairs of them does not fit into memory, and an assignment takes minutes per head.
MOST_TOKENS = 4096
REASON = f"it needs all pairs of tokens, which are not computed above {MOST_TOKENS:,} tokens"


def too_many_pairs(rows: Tensor) -> bool:
    """Whether a tensor (heads, tokens, …) has more tokens than the limit."""
    return rows.shape[1] > MOST_TOKENS
