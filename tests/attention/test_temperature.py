"""Temperatures: what they do to scores, and the one at which two attentions are equally sharp."""

import pytest
import torch
from benchmarks import explicit_attention as explicit

from attnaudit.attention import RPCAttention, SoftmaxAttention, SymmetricAttention, diagnosing, matching_temperatures
from attnaudit.errors import UsageError
from tests.attention.case import HEADS, WIDTH, tokens


@pytest.mark.parametrize("kind", [SoftmaxAttention, SymmetricAttention])
def test_a_temperature_of_four_is_queries_and_keys_of_half_the_size(kind):
    torch.manual_seed(0)
    module = kind(WIDTH, HEADS, temperature=4.0).double()
    parts = module._projected(tokens())
    halved = {name: part / 2 if name in "qk" else part for name, part in parts.items()}
    query = halved.get("q", halved["k"])
    expected = explicit.softmax(query, halved["k"], parts["v"])
    torch.testing.assert_close(module.mix(parts, tokens(), None, False), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_is_a_positive_number(temperature):
    with pytest.raises(UsageError, match=f"got {temperature}"):
        SymmetricAttention(WIDTH, HEADS, temperature=temperature)


@pytest.mark.parametrize("preset", ["code", "admm"])
def test_at_the_matching_temperature_symmetric_attention_has_the_entropy_of_rpc(preset):
    torch.manual_seed(0)
    rpc = RPCAttention(WIDTH, HEADS, iterations=3, preset=preset, qkv_bias=True).double().eval()
    batches = [tokens(seed, count=20) for seed in range(2)]
    (temperature,) = matching_temperatures(rpc, batches).values()
    plain = SymmetricAttention(WIDTH, HEADS, temperature=temperature, qkv_bias=True).double()
    plain.load_state_dict(rpc.state_dict())
    entropies = []
    for layer in (rpc, plain):
        with diagnosing(layer) as found, torch.no_grad():
            for batch in batches:
                layer(batch)
        passes = found[""][2::3] if layer is rpc else found[""]
        entropies.append(torch.stack([step.entropy for step in passes]).mean())
    torch.testing.assert_close(entropies[1], entropies[0], rtol=1e-8, atol=0)
    assert temperature != pytest.approx(1, abs=0.01)


def test_one_unclipped_iteration_is_symmetric_attention_at_temperature_one():
    torch.manual_seed(0)
    layer = RPCAttention(WIDTH, HEADS, iterations=1, lam=float("inf")).double()
    assert matching_temperatures(layer, [tokens()])[""] == pytest.approx(1)


def test_a_model_without_rpc_has_nothing_to_match():
    with pytest.raises(UsageError, match="SymmetricAttention has no RPC-Attention"):
        matching_temperatures(SymmetricAttention(WIDTH, HEADS), [tokens().float()])


def test_an_even_attention_has_no_temperature():
    layer = RPCAttention(WIDTH, HEADS, iterations=1, lam=0.0).double()
    with pytest.raises(UsageError, match="entropy"):
        matching_temperatures(layer, [tokens()])
