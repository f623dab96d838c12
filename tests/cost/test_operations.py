"""Operations counted by hand are those that torch counts, for every attention variant."""

from dataclasses import replace

import pytest

from attnaudit.cost.networks import SIZES, networks
from attnaudit.cost.operations import Operations, operations_by_hand, operations_by_torch
from attnaudit.sources.vision_transformer import build_vision_transformer

SMALL = {"image_size": 48, "depth": 2, "classes": 7}
VARIANTS = dict(networks("tiny", **SMALL))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_count_by_hand_is_torchs(name):
    architecture = VARIANTS[name]
    found = operations_by_torch(build_vision_transformer(architecture, 0), architecture)
    assert found == operations_by_hand(architecture)


def test_asymmetric_rpc_has_queries_too():
    plain = VARIANTS["rpc, 2 iterations, all blocks"]
    architecture = replace(plain, attention_options={"iterations": 2, "asymmetric": True})
    found = operations_by_torch(build_vision_transformer(architecture, 0), architecture)
    assert found == operations_by_hand(architecture)
    assert found.inference > operations_by_hand(plain).inference


def test_published_sizes_are_met():
    """1.254 billion multiply-adds for ViT-tiny, 1.167 for the symmetric one (attention_variants, section 10)."""
    found = {name: operations_by_hand(own) for name, own in networks("tiny")}
    assert found["softmax"].inference / 2 == pytest.approx(1.254e9, rel=5e-3)
    assert found["symmetric"].inference / 2 == pytest.approx(1.167e9, rel=5e-3)


def test_four_iterations_in_the_first_block_cost_four_per_cent_at_the_smallest_size():
    for size, more in zip(SIZES, (0.038, 0.021, 0.011), strict=True):
        found = {name: operations_by_hand(own).inference for name, own in networks(size)}
        ratio = found["rpc, 4 iterations, first block"] / found["symmetric"]
        assert ratio - 1 == pytest.approx(more, abs=1e-3)


def test_training_is_three_times_inference_but_for_the_gradient_of_pixels():
    found = operations_by_hand(VARIANTS["softmax"])
    assert isinstance(found, Operations)
    assert found.training == 3 * found.inference - 2 * 9 * 3 * 16**2 * 192
