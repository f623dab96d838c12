"""Heads of Primal-Attention made for tests."""

import torch
import torch.nn.functional as F

from attnaudit.capture import HeadId
from attnaudit.capture.primal_heads import PrimalHeads


def make_primal(query, key, rows, weight_e, weight_r, singular):
    index = tuple(HeadId("model", "input", 0, head) for head in range(len(query)))
    return PrimalHeads(F.normalize(query, dim=-1), F.normalize(key, dim=-1), rows, weight_e, weight_r, singular, index)


def random_primal(seed, heads=2, tokens=15, dim=6, rows=9, rank=3):
    """Everything Gaussian, Λ between 0 and 1."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(heads, *shape, generator=generator, dtype=torch.float64)

    query, key, picked = normal(tokens, dim), normal(tokens, dim), normal(rows, dim)
    return make_primal(query, key, picked, normal(rows, rank), normal(rows, rank), normal(rank).sigmoid())


def dense_kernel(heads):
    """K = Φ_q FᵀF Φ_kᵀ, tokens x tokens."""
    return heads.query @ heads.rows.mT @ heads.rows @ heads.key.mT
