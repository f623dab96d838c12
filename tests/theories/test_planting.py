"""Random draws for planted heads."""

from dataclasses import replace

import torch

from attnaudit.theories.planting import noise_of_heads, weights_of_heads
from tests.theories.layers import HEADS, layer


def draws(make, heads):
    return make(heads, (6, 2), "stream")


def test_weights_are_the_same_for_all_inputs_of_a_head_and_noise_is_not():
    heads = layer(inputs=2)
    weights, noise = (draws(make, heads) for make in (weights_of_heads, noise_of_heads))
    assert torch.equal(weights[:HEADS], weights[HEADS:])
    for own in (weights[:HEADS], noise):
        assert len(own.flatten().unique()) == own.numel()


def test_heads_of_the_same_number_in_different_layers_have_different_draws():
    heads = layer(inputs=1)
    other = replace(heads, index=tuple(entry._replace(layer=1) for entry in heads.index))
    for make in (weights_of_heads, noise_of_heads):
        assert not (draws(make, heads) == draws(make, other)).any()
