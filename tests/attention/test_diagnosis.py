"""Diagnoses of RPC-Attention: what a layer shows step by step."""

import math

import torch
from benchmarks import explicit_attention as explicit

from attnaudit.attention import RPCAttention, diagnosing
from attnaudit.attention.functional import blocks


def test_diagnoses_of_a_default_layer():
    """On layer-normed noise attention is nearly uniform at 2 iterations and nearly one-hot, to itself, at 6."""
    torch.manual_seed(0)
    layer = RPCAttention(192, 3, iterations=6, qkv_bias=True).double()
    x = torch.nn.functional.layer_norm(torch.randn(2, 197, 192, dtype=torch.float64), (192,))
    with diagnosing(layer) as found, torch.no_grad():
        layer(x)
    (steps,) = found.values()
    entropy, diagonal, nonzero, residual = (
        [getattr(step, name).mean().item() for step in steps] for name in ("entropy", "diagonal", "nonzero", "residual")
    )
    assert len(steps) == 6
    assert entropy[1] > 0.999 * math.log(197)
    assert entropy[5] < 0.01
    assert diagonal[0] < 0.1
    assert diagonal[5] > 0.99
    assert nonzero[0] == 0
    assert 0.05 < nonzero[5] < 0.2
    assert all(size > 0.9 for size in residual)
    assert layer.observe is None


def test_a_diagnosis_is_that_of_the_whole_matrix(monkeypatch):
    monkeypatch.setitem(blocks.BLOCK, "cpu", 100)  # so that there are several
    torch.manual_seed(0)
    layer, x = RPCAttention(12, 3, iterations=1, lam=0.4).double(), torch.randn(2, 7, 12, dtype=torch.float64)
    with diagnosing(layer) as found, torch.no_grad():
        layer(x, is_causal=True)
        parts = layer._projected(x)
    tau = layer.rule.tau(parts["k"], None, True)
    clipped = parts["k"].clamp(-tau, tau)
    attention = explicit.attention_matrix(clipped, clipped, torch.ones(7, 7, dtype=torch.bool).triu(1))
    (step,) = found[""]
    torch.testing.assert_close(step.entropy, torch.special.entr(attention).sum(-1).mean(-1))
    torch.testing.assert_close(step.diagonal, attention.diagonal(dim1=-2, dim2=-1).mean(-1))
    torch.testing.assert_close(step.nonzero, (parts["k"].abs() > tau).double().mean((-2, -1)))
    size = torch.linalg.matrix_norm(clipped - attention @ parts["v"]) / torch.linalg.matrix_norm(parts["k"])
    torch.testing.assert_close(step.residual, size)
