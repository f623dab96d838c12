"""Heads in another gauge: other weights, the same network."""

from dataclasses import replace

import pytest
import torch

from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures import MeasureInput
from attnaudit.measures.references.reparametrised import STRETCH, random_gauge, reparametrised
from attnaudit.measures.subspace import value_subspace_overlap
from tests.heads import make_heads, random_heads
from tests.measures.references.case import labelled, some


def heads_of_two_inputs():
    return labelled(random_heads(0, heads=4, tokens=20, dim=4))


def test_attention_stays_and_outputs_are_the_old_ones_in_the_basis_of_the_values():
    heads = heads_of_two_inputs()
    other, gauge = reparametrised(heads, 0, 0), random_gauge(heads, 0, 0)
    assert not torch.allclose(other.key, heads.key)
    assert not torch.allclose(other.query, heads.query)
    torch.testing.assert_close(other.attention(), heads.attention(), rtol=0, atol=1e-10)
    torch.testing.assert_close(other.output, heads.output @ gauge.values, rtol=0, atol=1e-10)
    torch.testing.assert_close(other.replayed(), other.output, rtol=0, atol=1e-10)


def test_masks_and_position_terms_do_not_disturb_it():
    heads = random_heads(1, heads=2, tokens=12)
    bias = torch.randn(2, 12, 12, dtype=torch.float64).masked_fill(torch.ones(12, 12).triu(1) > 0, -torch.inf)
    heads = make_heads(heads.query, heads.key, heads.value, bias=bias)
    other = reparametrised(replace(heads, output=heads.replayed()), 0, 0)
    torch.testing.assert_close(other.replayed(), other.output, rtol=0, atol=1e-10)


@pytest.mark.parametrize("limited", [{"softcap": 1.0}, {"sink": torch.full((2, 12), 0.5, dtype=torch.float64)}])
def test_keys_of_heads_that_notice_a_shift_are_not_shifted(limited):
    """Neither tanh nor the logit of a sink ignores what is added to a row of scores."""
    heads = replace(random_heads(1, heads=2, tokens=12), **limited)
    other = reparametrised(replace(heads, output=heads.replayed()), 0, 0)
    assert not torch.allclose(other.key, heads.key)
    torch.testing.assert_close(other.attention(), heads.attention(), rtol=0, atol=1e-10)
    torch.testing.assert_close(other.replayed(), other.output, rtol=0, atol=1e-10)


def test_all_inputs_share_a_gauge_and_heads_and_repeats_do_not():
    heads = heads_of_two_inputs()
    gauge = random_gauge(heads, 0, 0)
    for part in (gauge.keys, gauge.shift, gauge.values):
        assert torch.equal(part[:2], part[2:])
        assert not torch.allclose(part[0], part[1])
    for more in ((1, 0), (0, 1)):
        assert not torch.allclose(random_gauge(heads, *more).keys, gauge.keys)


def test_a_head_gets_the_same_gauge_in_any_batch():
    heads = heads_of_two_inputs()
    assert torch.equal(reparametrised(heads, 0, 0).key[2:], reparametrised(some(heads, [2, 3]), 0, 0).key)


def test_heads_that_share_their_keys_have_one_gauge_and_keep_their_attention():
    heads = heads_of_two_inputs()
    shared = replace(heads, key=heads.key[[0, 0, 2, 2]], value=heads.value[[0, 0, 2, 2]], key_heads=(0, 0, 0, 0))
    one = by_key_head(replace(shared, output=shared.replayed()))
    assert len(one) == 2
    other = reparametrised(one, 0, 0)
    torch.testing.assert_close(other.attention(), one.attention(), rtol=0, atol=1e-10)
    torch.testing.assert_close(other.replayed(), other.output, rtol=0, atol=1e-10)


def test_gauges_are_well_conditioned():
    gauge = random_gauge(labelled(random_heads(0, heads=20, dim=8)), 0, 0)
    for part in (gauge.keys, gauge.values):
        sizes = torch.linalg.svdvals(part)
        assert sizes.max() <= STRETCH * (1 + 1e-9)
        assert sizes.min() >= 1 / STRETCH * (1 - 1e-9)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_shift_of_keys_is_as_large_as_their_temperature_makes_them(scale):
    """The kernel of two shifts, scale·c·c', has standard deviation 1 whatever the scale."""
    heads = labelled(random_heads(0, heads=400, dim=8))
    shift = random_gauge(replace(heads, scale=torch.full_like(heads.scale, scale)), 0, 0).shift[:200]
    products = scale * shift @ shift.mT
    assert products.triu(1)[products.triu(1) != 0].std().item() == pytest.approx(1, abs=0.1)


def test_the_overlap_with_kernel_pca_depends_on_the_gauge():
    heads = heads_of_two_inputs()
    before, after = (value_subspace_overlap(MeasureInput.of(own)) for own in (heads, reparametrised(heads, 0, 0)))
    assert (before - after).abs().max() > 1e-3
