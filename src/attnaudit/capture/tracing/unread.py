"""Operations that may be attention as a whole, and show none of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from attnaudit.capture.tracing.fused import is_fused
from attnaudit.capture.tracing.operations import TorchOp

#: Of these libraries it is known what their operations do. Any other one may have registered attention.
_KNOWN = frozenset((
    "aten", "prim", "prims", "rngprims", "debugprims", "inductor", "inductor_prims", "profiler", "streams", "sparse",
    "c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "fsdp", "_dtensor", "symm_mem",
    "quantized", "_quantized", "quantized_decomposed", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "xnnpack",
    "prepacked", "torchvision", "image", "torchaudio",
))  # fmt: skip
#: Kernels of torch that are whole layers, or attention in a form that is not read; and quantised scores.
_WHOLE = (
    "multi_head_attention", "encoder_layer_fwd", "flash_attention", "efficient_attention", "cudnn_attention",
    "triton_scaled_dot_attention",
)  # fmt: skip


def is_unread(operation: TorchOp) -> bool:
    """Whether an operation of several activations may be attention."""
    name = operation.name
    if operation.func.namespace not in _KNOWN:
        return True
    if is_fused(name) or name.endswith("backward"):
        return False
    return any(part in name for part in _WHOLE) or (operation.func.namespace == "quantized" and name == "matmul")


def written_by(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    """The arguments that an operation writes to."""
    for place, argument in enumerate(operation.func._schema.arguments):
        given = args[place] if place < len(args) else kwargs.get(argument.name)
        if argument.alias_info is not None and argument.alias_info.is_write and isinstance(given, Tensor):
            yield given
