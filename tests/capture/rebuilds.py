"""Queries, keys and values of timm's attention layers, rebuilt from what their submodules computed.

Every function takes the attention module, the outputs and inputs of its submodules by name, and the batch size. It
returns (batch, windows, heads, tokens, dim) tensors, and `merged`, which turns the heads' output into what the layer
passes on; the layer's own `passed_on` is there to check the rebuild without capture.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from timm.layers.attention import Attention
from timm.layers.attention2d import MultiQueryAttention2d
from timm.layers.halo_attn import HaloAttn
from timm.models import davit, efficientvit_msra, hiera, levit, maxxvit, mvitv2, nest, shvit, swin_transformer, xcit
from torch import Tensor


class Rebuilt(NamedTuple):
    """One attention layer; `bias` broadcasts to (batch, windows, heads, queries, keys)."""

    query: Tensor
    key: Tensor
    value: Tensor
    passed_on: Tensor
    merged: Callable[[Tensor], Tensor]
    bias: Tensor | None = None

    @property
    def scale(self):
        return self.query.shape[-1] ** -0.5

    @property
    def attention(self):
        logits = self.query @ self.key.mT * self.scale
        return torch.softmax(logits if self.bias is None else logits + self.bias, dim=-1)

    @property
    def output(self):
        return self.attention @ self.value


def joined(output):
    """(batch, windows, heads, tokens, dim) → (batch·windows, tokens, width)."""
    return output.flatten(0, 1).transpose(1, 2).flatten(2)


def in_windows(qkv, heads, batch):
    """The usual projection, (batch·windows, tokens, 3·width) → three tensors."""
    rows, tokens, _ = qkv.shape
    return qkv.reshape(batch, rows // batch, tokens, 3, heads, -1).permute(3, 0, 1, 4, 2, 5)


def plain(module, out, seen, batch):
    return Rebuilt(*in_windows(out["qkv"], module.num_heads, batch), seen["proj"], joined)


def class_attention(module, out, seen, batch):
    query, key, value = (out[name].reshape(batch, 1, -1, module.num_heads, out[name].shape[-1] // module.num_heads)
                         .transpose(2, 3) for name in "qkv")  # fmt: skip
    return Rebuilt(query, key, value, seen["proj"], joined)


def swin(module, out, seen, batch):
    bias = module._get_rel_pos_bias()[:, None]
    mask = seen["mask"]
    if mask is not None:
        bias = bias + mask[None, :, None]
    return plain(module, out, seen, batch)._replace(bias=bias)


def cascaded(module, out, seen, batch):
    """EfficientViT: every head has a projection of its own, and starts from the output of the head before it."""
    heads = range(module.num_heads)
    split = [out[f"qkvs.{h}"].flatten(2).split([module.key_dim, module.key_dim, module.val_dim], dim=1) for h in heads]
    queries = [out[f"dws.{h}"].flatten(2) for h in heads]
    query, key, value = (
        torch.stack(parts, dim=1).unflatten(0, (batch, -1)).mT
        for parts in (queries, [part[1] for part in split], [part[2] for part in split])
    )
    bias = module.attention_biases[:, module.attention_bias_idxs]
    side = module.resolution
    return Rebuilt(
        query, key, value, seen["proj"], lambda o: o.flatten(0, 1).mT.flatten(1, 2).unflatten(2, (side, -1)), bias
    )


def single_head(module, out, seen, batch):
    """SHViT: one head on some of the channels; the other channels pass it by."""
    parts = out["qkv"].flatten(2).split([module.qk_dim, module.qk_dim, module.pdim], dim=1)
    query, key, value = (part.mT[:, None, None] for part in parts)
    return Rebuilt(query, key, value, seen["proj"][:, : module.pdim].flatten(2), lambda o: o[:, 0, 0].mT)


def multi_query(module, out, seen, batch):
    query = out["query"].reshape(batch, 1, module.num_heads, module.key_dim, -1).mT
    key, value = (out[name].flatten(2).mT[:, None, None] for name in ("key", "value"))
    return Rebuilt(query, key, value, seen["output"].flatten(2), lambda o: joined(o).mT)


def levit_attention(module, out, seen, batch):
    """LeViT, whose second form keeps images as (channels, height, width)."""
    sizes = [module.key_dim, module.key_dim, module.val_dim]
    if module.use_conv:
        parts = out["qkv"].reshape(batch, 1, module.num_heads, sum(sizes), -1).split(sizes, dim=3)
        query, key, value = (part.mT for part in parts)
        passed_on = seen["proj"].flatten(2).mT
    else:
        parts = out["qkv"].reshape(batch, 1, -1, module.num_heads, sum(sizes)).split(sizes, dim=4)
        query, key, value = (part.transpose(2, 3) for part in parts)
        passed_on = seen["proj"]
    bias = module.attention_biases[:, module.attention_bias_idxs]
    return Rebuilt(query, key, value, passed_on, joined, bias)


def levit_downsampling(module, out, seen, batch):
    sizes = [module.key_dim, module.val_dim]
    if module.use_conv:
        query = out["q"].reshape(batch, 1, module.num_heads, module.key_dim, -1).mT
        key, value = (p.mT for p in out["kv"].reshape(batch, 1, module.num_heads, sum(sizes), -1).split(sizes, dim=3))
        passed_on = seen["proj"].flatten(2).mT
    else:
        query = out["q"].reshape(batch, 1, -1, module.num_heads, module.key_dim).transpose(2, 3)
        parts = out["kv"].reshape(batch, 1, -1, module.num_heads, sum(sizes)).split(sizes, dim=4)
        key, value = (part.transpose(2, 3) for part in parts)
        passed_on = seen["proj"]
    bias = module.attention_biases[:, module.attention_bias_idxs]
    return Rebuilt(query, key, value, passed_on, joined, bias)


def coatnet(module, out, seen, batch):
    """Channels first; queries, keys and values of a head lie side by side."""
    parts = out["qkv"].reshape(batch, 1, module.num_heads, 3 * module.dim_head, -1).chunk(3, dim=3)
    query, key, value = (part.mT for part in parts)
    return Rebuilt(query, key, value, seen["proj"].flatten(2).mT, joined, module.rel_pos.get_bias())


def maxvit(module, out, seen, batch):
    """Channels last, in windows or on a grid; queries, keys and values of a head lie side by side."""
    qkv = out["qkv"].flatten(1, 2).unflatten(0, (batch, -1))
    parts = qkv.unflatten(3, (module.num_heads, -1)).chunk(3, dim=4)
    query, key, value = (part.transpose(2, 3) for part in parts)
    return Rebuilt(query, key, value, seen["proj"].flatten(1, 2), joined, module.rel_pos.get_bias())


def mvit(module, out, seen, batch):
    """Queries, keys and values are pooled; the queries meet position vectors, and are added to the output."""
    query, key, value = (out[f"norm_{name}"][:, None] for name in "qkv")
    sizes = [list(out[f"pool_{name}"].shape[-2:]) for name in "qk"]
    nothing = query.new_zeros(batch, module.num_heads, query.shape[3], key.shape[3])
    bias = mvitv2.cal_rel_pos_type(nothing, query[:, 0], False, *sizes, module.rel_pos_h, module.rel_pos_w)
    return Rebuilt(query, key, value, seen["proj"], lambda o: joined(o + query), bias[:, None])


def mask_units(module, out, seen, batch):
    """Hiera: tokens are laid out window by window *inside* the axis of tokens; queries are pooled."""
    tokens = out["qkv"].shape[1]
    windows = tokens // (module.q_stride * module.window_size) if module.use_mask_unit_attn else 1
    qkv = out["qkv"].reshape(batch, -1, windows, 3, module.heads, module.head_dim).permute(3, 0, 2, 4, 1, 5)
    query = qkv[0].unflatten(3, (module.q_stride, -1)).amax(dim=3)
    return Rebuilt(
        query, qkv[1], qkv[2], seen["proj"], lambda o: o.permute(0, 3, 1, 2, 4).reshape(batch, -1, module.dim_out)
    )


def nested(module, out, seen, batch):
    """NesT, which joins heads with the heads innermost."""
    qkv = out["qkv"]
    query, key, value = qkv.reshape(*qkv.shape[:3], 3, module.num_heads, -1).permute(3, 0, 1, 4, 2, 5)
    return Rebuilt(query, key, value, seen["proj"], lambda o: o.permute(0, 1, 3, 4, 2).flatten(3))


def halo(module, out, seen, batch):
    """Blocks of queries, each with a larger window of keys around it."""
    block, heads = module.block_size_ds, module.num_heads
    rows, columns = (size // block for size in out["q"].shape[-2:])
    query = out["q"].reshape(batch, heads, module.dim_head_qk, rows, block, columns, block)
    query = query.permute(0, 3, 5, 1, 4, 6, 2).reshape(batch, rows * columns, heads, block**2, -1)
    kv = torch.nn.functional.pad(out["kv"], [module.halo_size] * 4)
    windows = [
        kv[:, :, y : y + module.win_size, x : x + module.win_size].flatten(2)
        for y in range(0, rows * module.block_size, module.block_size)
        for x in range(0, columns * module.block_size, module.block_size)
    ]
    kv = torch.stack(windows, dim=1).unflatten(2, (heads, -1)).mT
    key, value = kv.split([module.dim_head_qk, module.dim_head_v], dim=-1)
    bias = module.pos_embed(query.transpose(1, 2).flatten(0, 1)).unflatten(0, (batch, heads)).transpose(1, 2)

    def folded(output):
        image = output.reshape(batch, rows, columns, heads, block, block, -1).permute(0, 3, 6, 1, 4, 2, 5)
        return image.reshape(batch, module.dim_out_v, rows * block, columns * block)

    return Rebuilt(query, key, value, seen["pool"], folded, bias)


REBUILDS = {
    Attention: plain,
    MultiQueryAttention2d: multi_query,
    HaloAttn: halo,
    davit.WindowAttention: plain,
    efficientvit_msra.CascadedGroupAttention: cascaded,
    hiera.MaskUnitAttention: mask_units,
    levit.Attention: levit_attention,
    levit.AttentionDownsample: levit_downsampling,
    maxxvit.Attention2d: coatnet,
    maxxvit.AttentionCl: maxvit,
    mvitv2.MultiScaleAttention: mvit,
    nest.Attention: nested,
    shvit.SHSA: single_head,
    swin_transformer.WindowAttention: swin,
    xcit.ClassAttn: class_attention,
}


def rebuilt_layers(model, images):
    """Run the model and rebuild every attention layer, in the order they ran."""
    layers, handles = [], []

    def watch(module):
        out, seen = {}, {}

        def keep(name):
            def hook(_, args, output):
                out[name], seen[name] = output, args[0]

            return hook

        def finish(module, args, kwargs, output):
            seen["mask"] = kwargs.get("mask", args[1] if len(args) > 1 else None)
            layers.append(REBUILDS[type(module)](module, out, seen, len(images)))

        handles.extend(part.register_forward_hook(keep(name)) for name, part in module.named_modules() if name)
        handles.append(module.register_forward_hook(finish, with_kwargs=True))

    for module in model.modules():
        if type(module) in REBUILDS:
            watch(module)
    with torch.no_grad():
        model(images)
    for handle in handles:
        handle.remove()
    return layers
