"""Vision transformers of DeiT's sizes with every attention variant."""

from __future__ import annotations

from collections.abc import Iterator

from attnaudit.display import counted
from attnaudit.records.architecture import Architecture

#: Width and heads of DeiT.
SIZES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}
#: What the others are held against: softmax attention on tables, symmetric attention in claims.
SOFTMAX, SYMMETRIC = "softmax", "symmetric"
ITERATIONS = range(1, 7)


def networks(size: str, **changes: int) -> Iterator[tuple[str, Architecture]]:
    """Every variant by name: in all of 12 blocks, and RPC-Attention in the first of a symmetric network too.

    `changes` are numbers of the architecture, such as `depth`.
    """
    width, heads = SIZES[size]
    shape = {"image_size": 224, "patch_size": 16, "width": width, "heads": heads, "depth": 12, "classes": 1000}
    shape |= changes

    def built(attention: str, **more: object) -> Architecture:
        return Architecture(attention=attention, **shape, **more)  # type: ignore[arg-type]

    yield SOFTMAX, built("softmax")
    yield SYMMETRIC, built("symmetric")
    yield "scaled, α", built("scaled", attention_options={"form": "alpha"})
    yield "scaled, learned S", built("scaled", attention_options={"form": "learned"})
    yield "scaled, exact S", built("scaled", attention_options={"form": "exact"})
    for count in ITERATIONS:
        options = {"iterations": count}
        first = {"attention_layers": (0,), "other_attention": "symmetric"}
        yield f"rpc, {counted(count, 'iteration')}, first block", built("rpc", attention_options=options, **first)
    for count in ITERATIONS:
        yield f"rpc, {counted(count, 'iteration')}, all blocks", built("rpc", attention_options={"iterations": count})
    yield "primal, rank 20", built("primal")
