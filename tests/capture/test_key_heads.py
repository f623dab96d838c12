"""Heads that share their keys and values are one head with the queries of all."""

from dataclasses import replace

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.capture.key_heads import by_key_head
from tests.heads import causal, random_heads
from tests.measures.references.case import labelled

transformers = pytest.importorskip("transformers")


def grouped(key_heads):
    """Heads of one input, of which those with the same number share keys and values, under a causal mask."""
    heads = random_heads(0, heads=len(key_heads))
    own = torch.tensor(key_heads)
    shared = replace(heads, key=heads.key[own], value=heads.value[own], key_heads=tuple(key_heads))
    return causal(shared)


@pytest.mark.parametrize("key_heads", [(0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 0)])
def test_a_key_head_attends_with_the_queries_of_all_its_heads(key_heads):
    heads = grouped(key_heads)
    found, numbers = by_key_head(heads), torch.tensor(key_heads)
    assert [entry.head for entry in found.index] == sorted(set(key_heads))
    for place, number in enumerate(sorted(set(key_heads))):
        own = heads.attention()[numbers == number]
        torch.testing.assert_close(found.attention()[place], own.flatten(0, 1), rtol=0, atol=1e-14)
        assert torch.equal(found.key[place], heads.key[numbers == number][0])
    torch.testing.assert_close(found.replayed(), found.output, rtol=0, atol=1e-12)
    assert found.causal


def test_heads_with_keys_of_their_own_stay_as_they_are():
    for key_heads in (None, (0, 1), (0, 0)):
        heads = replace(random_heads(0), key_heads=key_heads)  # the last one says so, but its keys differ
        assert by_key_head(heads) is heads


def test_heads_of_other_temperatures_are_not_joined():
    heads = grouped((0, 0))
    other = replace(heads, scale=heads.scale * torch.tensor([1.0, 2.0], dtype=heads.scale.dtype))
    assert by_key_head(other) is other


def test_heads_that_happen_to_have_equal_keys_are_not_joined():
    heads = random_heads(0)
    heads.key[1] = heads.key[0]
    heads.value[1] = heads.value[0]
    assert by_key_head(replace(heads, key_heads=(0, 1))).index == heads.index


def test_every_input_keeps_its_key_heads():
    heads = labelled(random_heads(0, heads=4))
    assert len({entry.input for entry in heads.index}) == 2
    shared = replace(heads, key=heads.key[[0, 0, 2, 2]], value=heads.value[[0, 0, 2, 2]], key_heads=(0, 0, 0, 0))
    found = by_key_head(shared)
    assert [(entry.input, entry.head) for entry in found.index] == [
        (heads.index[0].input, 0),
        (heads.index[2].input, 0),
    ]
    assert torch.equal(found.query[1], heads.query[2:].flatten(0, 1))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_capture_numbers_the_key_heads_of_grouped_queries(implementation, key_heads):
    config = transformers.LlamaConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=key_heads,
        attn_implementation=implementation,
    )
    torch.manual_seed(0)
    model = transformers.LlamaModel(config).eval()
    (heads,) = capture(model, {"input_ids": torch.randint(0, 30, (3, 9))}).layers
    found = by_key_head(heads)
    assert len(found) == 3 * key_heads
    assert found.query.shape[1] == 9 * 4 // key_heads
    assert found.causal
    torch.testing.assert_close(found.replayed(), found.output, rtol=1e-4, atol=1e-6)
