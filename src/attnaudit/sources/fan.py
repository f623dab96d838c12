"""The fully attentional network (FAN) of Zhou et al. (2022), "Understanding the Robustness in Vision Transformers".

A block of a vision transformer mixes tokens by attention and channels by an MLP. In a FAN block the channels attend,
too. For tokens z (N x C), with σ the softmax over tokens, channel c of the output is

    y_c = LN(MLP(z))_c · t · sigmoid(σ(z W)_cᵀ mean_c'(σ(z)_c')),

which is efficient channel attention as in the authors' code, with one head: instead of all C x C pairs of channels,
each is compared with their mean, and the MLP takes the place of the values. Both halves of a block have a learned scale
per channel (LayerScale). The authors' convolutional stem and their two class-attention blocks at the end are left out:
images here have few patches, and the class token attends in every block, as in a vision transformer.
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.records.architecture import Architecture
from attnaudit.sources.timm_library import timm_vision_transformer

#: Where LayerScale begins.
_LAYER_SCALE = 1.0


class ChannelAttention(nn.Module):
    """An MLP whose channels are weighted by efficient channel attention.

    The arguments are those that timm's block gives its MLP.

    Args:
        in_features: width C of the tokens.
        hidden_features: width of the MLP's hidden layer.
        arguments: further arguments of timm's `Mlp`.
    """

    #: What capture says of it.
    not_softmax = "it attends over channels instead of tokens (channel attention of a fully attentional network)"

    def __init__(self, in_features: int, hidden_features: int, **arguments: Any) -> None:
        super().__init__()
        self.query = nn.Linear(in_features, in_features)
        self.values = timm_vision_transformer().Mlp(in_features, hidden_features, **arguments)
        self.norm = nn.LayerNorm(in_features)
        self.temperature = nn.Parameter(self.norm.weight.new_ones(1))

    def forward(self, x: Float[Tensor, "batch tokens channels"]) -> Float[Tensor, "batch tokens channels"]:
        """Every channel of the MLP's output, weighted by how it agrees with the mean channel over tokens."""
        mean = x.softmax(dim=1).mean(dim=2, keepdim=True)
        agreement = (self.query(x).softmax(dim=1) * mean).sum(dim=1, keepdim=True)
        weighted: Tensor = self.norm(self.values(x)) * (self.temperature * agreement.sigmoid())
        return weighted


def fan_arguments(architecture: Architecture) -> dict[str, Any]:
    """What makes timm's VisionTransformer a FAN; empty for a plain one."""
    if architecture.blocks == "vit":
        return {}
    return {"mlp_layer": ChannelAttention, "init_values": _LAYER_SCALE}
