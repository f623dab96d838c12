"""Where measures stop that compare every token with every other."""

from __future__ import annotations

from torch import Tensor

#: With more tokens a matrix over pairs of them no longer fits, and the best assignment takes minutes per head.
MOST_TOKENS = 4096
REASON = f"it needs all pairs of tokens, which are left out above {MOST_TOKENS:,} tokens"


def too_many_pairs(rows: Tensor) -> bool:
    """Whether (heads, tokens, …) has more tokens than that."""
    return rows.shape[1] > MOST_TOKENS
