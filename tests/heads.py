"""Heads made for tests."""

from dataclasses import replace

import numpy as np
import torch

from attnaudit.capture import HeadId, Heads


def make_heads(query, key, value, **more):
    """Heads with their true outputs, temperature √d."""
    scale = torch.full((len(key),), key.shape[-1] ** -0.5, dtype=key.dtype)
    output = torch.softmax(query @ key.mT * scale[:, None, None], dim=-1) @ value
    index = tuple(HeadId("model", "input", 0, head) for head in range(len(key)))
    return Heads(query, key, value, output, scale, index, **more)


def random_heads(seed, heads=2, tokens=14, dim=4, key_size=0.8):
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(heads, tokens, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    return make_heads(key_size * query, key_size * key, value)


def causal(heads, window=None):
    """The same heads under a causal mask, with the outputs that they have then."""
    seen = torch.ones(heads.tokens, heads.tokens, dtype=torch.bool).tril()
    if window is not None:
        seen &= ~torch.ones_like(seen).tril(-window)
    bias = torch.zeros(seen.shape, dtype=heads.key.dtype).masked_fill(~seen, -torch.inf).expand(len(heads), -1, -1)
    masked = replace(heads, bias=bias)
    return replace(masked, output=masked.attended(heads.value))


def fixture_heads():
    """The reference head of the study's specification: default_rng(0), Q, K = 0.5·N, V = N, 197 x 64, in that order."""
    generator = np.random.default_rng(0)
    query, key, value = (
        torch.from_numpy(size * generator.standard_normal((197, 64))).unsqueeze(0) for size in (0.5, 0.5, 1.0)
    )
    return make_heads(query, key, value)
