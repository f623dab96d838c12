"""The floating-point operations of a vision transformer, counted by hand, for every attention variant.

A multiply-add counts as two, and only products count, as in `torch.utils.flop_counter`. For one image of N tokens
(class token included) through D blocks of width C with an MLP of width 4C, patches of p x p pixels and k classes:

    patches     E = 2(N-1)·3p²·C
    block       B = 2(j+1)N·C² + 16N·C² + A      (j projections to queries, keys and values, one back; the MLP)
    classes     2C·k                             (of the class token)

    attention   j   A
    softmax     3   4N²C                         (QKᵀ and its product with V)
    symmetric   2   4N²C
    rpc, n      2   n·4N²C                       (n calls of symmetric attention; everything between is elementwise)
    rpc, asym.  3   n·4N²C
    scaled, α   3   2·4N²C                       (one attention for S V, one for the output)
    scaled, S   3   4N²C + 2N²C                  (S is given)
    exact S     3   4N²C + 2N²C                  (KKᵀ for the sums of its rows; S itself has rank one)
    primal, s   2   4rCs + 4NCs + 4NCs           (weights from r = min(10s, N) rows of the input; e and r; their join)

Backward has two products for each one of forward, except that pixels need no gradient: training costs 3F - E, where F
is forward. The sums of the exact S keep no scores and compute them again, 2N²C in every block. Fused attention does the
same in every call; here that is left out, as in attention that keeps its scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.records.architecture import Architecture

_ROW_FACTOR, _RANK, _COLOURS = 10, 20, 3


@dataclass(frozen=True)
class Operations:
    """Of one image."""

    inference: int
    training: int


def operations_by_hand(architecture: Architecture) -> Operations:
    """The count by these formulas, for a network of softmax attention, or of one variant in some blocks."""
    own = architecture
    chosen = range(own.depth) if own.attention_layers is None else {n % own.depth for n in own.attention_layers}
    patches = 2 * (own.tokens - 1) * _COLOURS * own.patch_size**2 * own.width
    with_variant = _block(own, own.attention, own.attention_options)
    others = _block(own, own.other_attention, {})
    forward = patches + len(chosen) * with_variant + (own.depth - len(chosen)) * others + 2 * own.width * own.classes
    exact = own.attention == "scaled" and own.attention_options.get("form") == "exact"
    again = len(chosen) * 2 * own.tokens**2 * own.width if exact else 0
    return Operations(forward, 3 * forward - patches + again)


def operations_by_torch(model: nn.Module, architecture: Architecture) -> Operations:
    """The count of `torch.utils.flop_counter`, with attention that keeps its scores."""
    image = torch.zeros(1, 3, architecture.image_size, architecture.image_size, device=next(model.parameters()).device)
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward, torch.no_grad():
            model(image)
        with FlopCounterMode(display=False) as both:
            model(image).sum().backward()
    model.zero_grad(set_to_none=True)
    return Operations(forward.get_total_flops(), both.get_total_flops())


def _block(own: Architecture, attention: str, options: Mapping[str, Any]) -> int:
    projections, mixing = _attention(attention, options, own.tokens, own.width)
    return 2 * (projections + 1) * own.tokens * own.width**2 + 16 * own.tokens * own.width**2 + mixing


def _attention(name: str, options: Mapping[str, Any], tokens: int, width: int) -> tuple[int, int]:
    """The number of projections, and the operations of the attention itself."""
    core = 4 * tokens**2 * width
    if name == "softmax":
        return 3, core
    if name == "symmetric":
        return 2, core
    if name == "rpc":
        return (3 if options.get("asymmetric") else 2), options.get("iterations", 4) * core
    if name == "scaled":
        return 3, 2 * core if options.get("form", "alpha") == "alpha" else core + core // 2
    rank = options.get("rank", _RANK)
    rows = min(rank * _ROW_FACTOR, tokens)
    return 2, 4 * rows * width * rank + 8 * tokens * width * rank
