"""Ways of writing attention, and of writing something that is not softmax(QKᵀ·scale + bias)V."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class OneLayer(nn.Module):
    """Projections around an attention function of (query, key, value), all (batch, heads, tokens, dim)."""

    def __init__(self, attend, width=12, heads=3):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.attend = heads, attend

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width))


def softmax_product(q, k, v):
    return ((q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


def entropy_besides(q, k, v):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    entropy = -(weights * weights.clamp_min(1e-9).log()).sum(-1)
    return weights @ v + 0 * entropy[..., None]


def singular_values_besides(q, k, v):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    return weights @ v / torch.linalg.svdvals(weights)[..., :1, None]


def scores_times_a_matrix(q, k, v):
    return torch.matmul(q @ k.mT, torch.eye(k.shape[-2])).softmax(-1) @ v


def both_scaled(q, k, v):
    quarter = q.shape[-1] ** -0.25
    return F.softmax((q * quarter) @ (k * quarter).transpose(-1, -2), dim=-1) @ v


def einsum(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhij,bhjd->bhid", F.softmax(scores, dim=-1), v)


def flattened_bmm(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, n, d) for x in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / d**0.5, -1), v).reshape(b, h, n, d)


def causal(q, k, v):
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(mask, -torch.inf)
    return F.dropout(scores.softmax(-1), 0.1, training=False) @ v


def fused_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def fused_boolean_mask(q, k, v):
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)


def softcapped(q, k, v):
    return (20 * torch.tanh(q @ k.mT / 20)).softmax(-1) @ v


def biased_in_the_product(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, n, d) for x in (q, k, v))
    scores = torch.baddbmm(torch.linspace(0, 1, n).expand(b * h, n, n), q, k.mT, beta=0.5, alpha=d**-0.5)
    return (scores.softmax(-1) @ v).reshape(b, h, n, d)


def position_term(q, k, v):
    place = torch.arange(q.shape[-2])
    return torch.add(q @ k.mT, (place[:, None] - place).abs().float(), alpha=-0.5).softmax(-1) @ v


def values_on_the_left(q, k, v):
    return (v.mT @ (k @ q.mT).softmax(-2)).mT


def keys_of_one_head(q, k, v):
    return (torch.einsum("bhid,bjd->bhij", q, k[:, 0]) / 2).softmax(-1) @ v


def written_into_slices(q, k, v):
    scores = q @ k.mT
    scores[..., 1:, 1:] += torch.linspace(0, 1, q.shape[-2] - 1)
    scores[:, :, 0] = scores[:, :, 0] - 1.0
    return scores.softmax(-1) @ v


def with_a_sink(q, k, v):
    scores = torch.cat([q @ k.mT, torch.ones(*q.shape[:3], 1)], dim=-1)
    scores = scores - scores.max(dim=-1, keepdim=True).values
    return scores.softmax(-1)[..., :-1] @ v


def clamped_where_it_changes_nothing(q, k, v):
    return torch.clamp(q @ k.mT, min=-1e9).softmax(-1) @ v


GOOD = [
    softmax_product,
    entropy_besides,
    singular_values_besides,
    both_scaled,
    einsum,
    flattened_bmm,
    causal,
    fused_causal,
    fused_boolean_mask,
    grouped,
    softcapped,
    biased_in_the_product,
    position_term,
    values_on_the_left,
    keys_of_one_head,
    written_into_slices,
    with_a_sink,
    clamped_where_it_changes_nothing,
]


def talking(q, k, v):
    mix = torch.eye(q.shape[1]) + 0.1
    scores = F.linear((q @ k.mT).permute(0, 2, 3, 1), mix).permute(0, 3, 1, 2)
    return scores.softmax(-1) @ v


def linear_attention(q, k, v):
    return F.elu(q) @ (F.elu(k).transpose(-2, -1) @ v)


def softmax_over_queries(q, k, v):
    return (q @ k.mT).softmax(dim=-2) @ v


def reweighted(q, k, v):
    return ((q @ k.mT).softmax(-1) * torch.rand(k.shape[-2])) @ v


def dropped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


def two_products(q, k, v):
    return ((q @ k.mT + v @ q.mT) / 2).softmax(-1) @ v


def gated_by_its_scores(q, k, v):
    scores = q @ k.mT
    return (scores + torch.sigmoid(scores).cumsum(-1)).softmax(-1) @ v


def sigmoid_attention(q, k, v):
    return torch.sigmoid(q @ k.mT) @ v


def over_channels(q, k, v):
    return v @ (q.mT @ k).softmax(-1).mT


def additive_scores(q, k, v):
    return torch.tanh(q[..., :, None, :] + k[..., None, :, :]).sum(-1).softmax(-1) @ v


def across_inputs(q, k, v):
    q, k, v = (x.transpose(0, 2) for x in (q, k, v))
    return softmax_product(q, k, v).transpose(0, 2)


def fused_across_inputs(q, k, v):
    q, k, v = (x.transpose(0, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(0, 2)


def packed(q, k, v):
    """All inputs in one row, as models do that pack images of different sizes."""
    q, k, v = (x.transpose(0, 1).flatten(1, 2)[None] for x in (q, k, v))
    return softmax_product(q, k, v)[0].unflatten(1, (2, -1)).transpose(0, 1)


def inputs_as_tokens(q, k, v):
    """Scores of inputs with one another, summed over tokens and features."""
    q, k, shape, v = q.flatten(1), k.flatten(1), v.shape, v.flatten(1)
    return ((q @ k.mT).softmax(-1) @ v).view(shape)


def hard(q, k, v):
    scores = q @ k.mT
    chosen = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
    soft = scores.softmax(-1)
    return (chosen + soft - soft.detach()) @ v


def hard_by_its_weights(q, k, v):
    soft = (q @ k.mT).softmax(-1)
    chosen = torch.zeros_like(soft).scatter(-1, soft.max(-1, keepdim=True)[1], 1.0)
    return (chosen - soft.detach() + soft) @ v


def two_gated_softmaxes(q, k, v):
    places = torch.arange(k.shape[-2]).float()
    return (0.3 * (q @ k.mT).softmax(-1) + 0.7 * (-places).softmax(-1)) @ v


def distances(q, k, v):
    return (-(torch.cdist(q, k) ** 2)).softmax(-1) @ v


def scores_of_a_convolution(q, k, v):
    b, h, n, d = q.shape
    scores = F.conv1d(q.mT.reshape(b, h * d, n), torch.randn(h, h * d, 1, generator=torch.Generator().manual_seed(1)))
    return scores.softmax(-1)[:, :, None].expand(-1, -1, n, -1) @ v


def some_queries(q, k, v):
    """Tokens are selected by their weights, times the lengths of values, over all heads."""
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    ranks = torch.einsum("bhn,bhn->bn", weights[:, :, 0], v.norm(dim=-1)).argsort(-1)[:, None, :-1, None]
    chosen = weights.gather(2, ranks.expand(-1, q.shape[1], -1, k.shape[-2]))
    return F.pad(chosen @ v, (0, 0, 0, 1))


def single_key(q, k, v):
    return einsum(q, k[:, :, :1], v[:, :, :1])


BAD = [
    (packed, "several inputs of the batch: capture one input at a time"),
    (inputs_as_tokens, "across the inputs"),
    (hard, "hard attention"),
    (hard_by_its_weights, "hard attention"),
    (two_gated_softmaxes, "multiplied by other factors after the softmax"),
    (distances, "distances between queries and keys"),
    (scores_of_a_convolution, "come from a convolution"),
    (some_queries, "only some of its queries"),
    (single_key, "gets all of the weight"),
    (across_inputs, "across the inputs"),
    (fused_across_inputs, "across the inputs"),
    (talking, "talking heads"),
    (linear_attention, "linear attention"),
    (softmax_over_queries, "over queries instead of keys"),
    (reweighted, "multiplied by other factors after the softmax"),
    (scores_times_a_matrix, "multiplied by a matrix"),
    (dropped, "dropout"),
    (two_products, "sum of two products"),
    (gated_by_its_scores, "own scores"),
    (sigmoid_attention, "sigmoid, without a softmax"),
    (over_channels, "channels instead of tokens"),
    (additive_scores, "no product of queries and keys"),
]

INPUTS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))
