"""Which operations leave every element in its place, so that labels of an operand are those of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import Labels, LastingMove, deepest, lost, narrowed, varies
from attnaudit.capture.tracing.operations import TorchOp

#: Elementwise, whatever torch says of them.
_ELEMENTWISE = frozenset((
    "masked_fill", "fill", "zero", "where", "copy", "glu", "prelu", "_prelu_kernel", "rrelu_with_noise", "polar",
    "complex", "hardswish", "log_sigmoid_forward", "isin", "floor_divide", "__and__", "__or__", "__xor__", "tril",
    "triu", "special_expit", "bucketize", "index_fill", "index", "gather", "index_select", "scatter",
    "fake_quantize_per_tensor_affine", "_thnn_fused_lstm_cell", "dropout", "rsub", "ldexp", "normal", "uniform",
    "quantize_per_tensor", "dequantize", "int_repr", "_to_dense",
))  # fmt: skip
#: They mix each element with those before it along an axis.
SCANS = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
#: They mix elements along axes, which keep their order; a reduced axis has the size 1, or is gone.
_ALONG_AXES = frozenset((
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "cudnn_batch_norm",
    "miopen_batch_norm", "_fused_rms_norm", "rms_norm", "renorm", "_log_softmax", *SCANS, "sum",
    "nansum", "mean", "nanmean", "prod", "amax", "amin", "aminmax", "max", "min", "any",
    "all", "argmax", "argmin", "var", "std", "var_mean", "std_mean", "logsumexp", "norm", "linalg_vector_norm",
    "count_nonzero", "median", "nanmedian", "mode", "kthvalue", "_fft_c2c", "_fft_r2c", "_fft_c2r", "col2im",
    "grid_sampler_2d", "grid_sampler_3d", "lstm", "gru", "rnn_tanh", "rnn_relu", "mkldnn_rnn_layer", "_cudnn_rnn",
    "layer_norm", "group_norm", "batch_norm", "instance_norm", "linalg_cross", "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
))  # fmt: skip
#: Pooling, and padding by numbers of the tensor itself.
_RESIZING = ("upsample_", "_upsample_", "reflection_pad", "replication_pad")
#: They multiply rows by a matrix.
_OF_ROWS = frozenset((
    "_grouped_mm", "_scaled_mm", "_int_mm", "_weight_int8pack_mm", "_weight_int4pack_mm", "linear", "linear_dynamic",
    "linear_relu_dynamic", "linear_dynamic_fp16", "mkldnn_linear",
))  # fmt: skip


def stays_in_place(operation: TorchOp) -> bool:
    """Whether elements keep their order along every axis; those of an operation that nothing is known of need not."""
    name = operation.name.removesuffix("_")
    known = name in _ELEMENTWISE or name in _ALONG_AXES or name in _OF_ROWS
    return operation.elementwise or known or "pool" in name or name.startswith(_RESIZING)


def makes_columns(operation: TorchOp) -> bool:
    """Whether it multiplies rows by a matrix: labels that vary along the last axis say nothing any more."""
    return operation.name in _OF_ROWS


def resized(operation: TorchOp, labels: Labels, size: torch.Size) -> Labels:
    """Labels after pooling, broadcasting or a product of rows: those that do not vary where the size changed."""
    return labels.moved(Resize(size, makes_columns(operation)))


def scattered(given: Sequence[Labels], shape: torch.Size) -> Labels:
    """Labels after an operation that may take any element anywhere: those that all elements have."""

    def make(name: str) -> Tensor | None:
        found = [labels.get(name) for labels in given]
        numbers = {_only_number(label) for label in found}
        number = numbers.pop() if len(numbers) == 1 else None
        return lost(name, shape) if number is None else torch.tensor(number).expand(shape)

    return given[0].leading_to(("scattered", *given, shape), make, deepest(given))


def _only_number(label: Tensor | None) -> int | None:
    small = None if label is None else narrowed(label)
    return None if small is None or small.numel() != 1 else int(small)


def first_known(given: Sequence[Labels]) -> Labels:
    """Labels of what is made of elements in the same places: the input is the first that is known."""

    def make(name: str) -> Tensor | None:
        label = given[0].get(name)
        if name != "sample" or (label is not None and _is_known(label)):
            return label
        others = (labels.get(name) for labels in given[1:])
        return next((other for other in others if other is not None and _is_known(other)), label)

    return given[0] if len(given) == 1 else given[0].leading_to(("first", *given), make, deepest(given))


def _is_known(label: Tensor) -> bool:
    small = narrowed(label)
    return small.numel() == 0 or int(small.min()) >= 0


@dataclass(frozen=True, slots=True)
class Alike(LastingMove):
    """Labels that do not vary along an axis, along which elements were mixed."""

    axis: int

    def __call__(self, label: Tensor) -> Tensor:
        """The label as it was."""
        if varies(label, self.axis):
            raise ValueError("it varies along an axis that was mixed")
        return label


@dataclass(frozen=True, slots=True)
class Resize(LastingMove):
    """Another length of axes along which nothing varies; with `rows`, the last one is made anew whatever its length."""

    size: torch.Size
    rows: bool = False

    def __call__(self, label: Tensor) -> Tensor:
        """The label with this size."""
        for axis, length in enumerate(self.size):
            if label.shape[axis] != length or (self.rows and axis == len(self.size) - 1):
                if varies(label, axis):
                    raise ValueError("it varies where the size changed")
                label = label.narrow(axis, 0, 1)
        return narrowed(label).expand(self.size)
