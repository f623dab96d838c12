"""How the operators of torch treat attention weights, by the names they have below autograd."""

from __future__ import annotations

#: The kernel of `torch.nn.TransformerEncoderLayer`, whose attention is in a module of its own.
WHOLE_LAYER = "_transformer_encoder_layer_fwd"
#: Kernels that do all of attention; the count does not look inside.
FUSED = frozenset((
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable", "_native_multi_head_attention",
    WHOLE_LAYER, "flex_attention",
))  # fmt: skip
SOFTMAX = frozenset(("_softmax", "_safe_softmax", "softmax"))
#: Matrix products, and the places of their two factors among the arguments.
PRODUCTS = {"mm": 0, "bmm": 0, "matmul": 0, "mv": 0, "addmm": 1, "baddbmm": 1, "addmv": 1, "addbmm": 1, "linear": 0}
#: Operators whose result has the same entries, or some of them, elsewhere or in another precision.
MOVES = frozenset((
    "_to_copy", "clone", "copy_", "copy", "contiguous", "cat", "stack", "index", "index_select", "gather", "repeat",
    "constant_pad_nd", "index_put", "index_put_", "_index_put_impl_", "slice_scatter", "select_scatter", "roll", "flip",
    "_reshape_copy", "_unsafe_view", "masked_fill", "masked_fill_", "where", "nan_to_num", "nan_to_num_", "tril",
    "triu", "repeat_interleave", "native_dropout", "dropout", "im2col", "scatter", "scatter_", "unfold",
))  # fmt: skip
#: Operators that work entry by entry.
ENTRYWISE = frozenset((
    "mul", "mul_", "div", "div_", "add", "add_", "sub", "sub_", "rsub", "clamp", "clamp_", "clamp_min", "maximum",
    "minimum", "tanh", "tanh_", "exp", "pow", "neg", "sigmoid", "relu", "abs", "native_layer_norm", "native_batch_norm",
    "native_group_norm", "_native_batch_norm_legit_no_training",
))  # fmt: skip
