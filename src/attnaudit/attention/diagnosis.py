"""What an attention layer does with its tokens: measured on request, in blocks of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.attention.base import Attention
from attnaudit.attention.functional import Pass
from attnaudit.attention.functional.blocks import row_blocks, score_block
from attnaudit.attention.functional.masks import one_mask


@dataclass(frozen=True)
class Diagnosis:
    """One softmax attention of a layer; the last two only where keys are split into L + S.

    `entropy` in nats and `diagonal` (a token's attention to itself) are means over queries; `nonzero` is the share of
    entries of S that are not zero; `residual` is ‖K - L - S‖ / ‖K‖.
    """

    entropy: Float[Tensor, "batch heads"]
    diagonal: Float[Tensor, "batch heads"]
    nonzero: Float[Tensor, "batch heads"] | None = None
    residual: Float[Tensor, "batch heads"] | None = None


@contextmanager
def diagnosing(model: nn.Module) -> Iterator[dict[str, list[Diagnosis]]]:
    """Inside the block each of our attention layers notes, by name, one `Diagnosis` per attention it runs."""
    found: dict[str, list[Diagnosis]] = defaultdict(list)
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, Attention)}
    for name, layer in layers.items():
        layer.observe = lambda seen, name=name: found[name].append(diagnose(seen))
    try:
        yield found
    finally:
        for layer in layers.values():
            layer.observe = None


@torch.no_grad()
def diagnose(seen: Pass) -> Diagnosis:
    """Entropy and diagonal mass of one attention, and for RPC how K was split."""
    entropy, diagonal = _entropy_and_diagonal(seen)
    if seen.sparse is None or seen.residual is None:
        return Diagnosis(entropy, diagonal)
    return Diagnosis(
        entropy,
        diagonal,
        nonzero=(seen.sparse != 0).double().mean(dim=(-2, -1)),
        residual=torch.linalg.matrix_norm(seen.residual) / torch.linalg.matrix_norm(seen.original),
    )


def _entropy_and_diagonal(seen: Pass) -> tuple[Tensor, Tensor]:
    query, key = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (seen.query, seen.key))
    batch, heads, tokens, _ = query.shape
    mask, is_causal = one_mask(seen.mask, seen.is_causal, tokens)
    entropy, diagonal = query.new_zeros(batch, heads), query.new_zeros(batch, heads)
    for rows in row_blocks(query):
        scores = score_block(query, key, rows, mask=mask, is_causal=is_causal, scale=seen.scale)
        attention = torch.softmax(scores, dim=-1)
        entropy += torch.special.entr(attention).sum(dim=(-2, -1))
        diagonal += attention.diagonal(offset=rows.start, dim1=-2, dim2=-1).sum(dim=-1)
    return entropy / tokens, diagonal / tokens
