"""Values against kernel PCA in a gauge that was fitted to other inputs."""

from dataclasses import replace

import pytest
import torch

from attnaudit.kernel.any_gauge import Gauge, gauge_spans
from attnaudit.measures.gauges import Gauges
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.references.reparametrised import reparametrised
from attnaudit.protocol import Protocol
from tests.heads import make_heads
from tests.measures.references.case import labelled

INPUTS, HEADS, DIM = 16, 2, 6
HALVES = {f"input-{place}": place % 2 for place in range(INPUTS)}


def layer(tokens=30, seed=0):
    """Skewed keys, and values that have nothing to do with them."""
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(INPUTS * HEADS, tokens, DIM, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    heads = labelled(make_heads(query, key + 0.3 * key.square(), value), inputs=INPUTS)
    return replace(heads, source=torch.randn(INPUTS, tokens, 12, generator=generator, dtype=torch.float64))


def measured(batches, fitted=None, **more):
    """By reference and repeat, the overlaps of all heads."""
    gauges = Gauges(HALVES, 0, 2, **({"steps": 25} | more))
    for heads in fitted or batches:
        gauges.add(KeyKernel(heads, Protocol.EXACT))
    gauges.fit()
    found = {}
    for heads in batches:
        for name, repeat, overlaps in gauges.overlaps(KeyKernel(heads, Protocol.EXACT)):
            found.setdefault((name, repeat), []).append(overlaps)
    return {kind: torch.cat(parts) for kind, parts in found.items()}


@pytest.fixture(scope="module")
def found():
    return measured([layer()])


def test_every_kind_of_values_is_measured_for_every_head(found):
    assert list(found) == [("observed", 0), ("random_projection", 0), ("random_projection", 1), ("planted", 0)]
    for overlaps in found.values():
        assert overlaps.shape == (INPUTS * HEADS,)
        assert overlaps.isfinite().all()


def test_every_repeat_of_the_null_is_a_draw_of_its_own(found):
    assert not torch.isclose(found["random_projection", 0], found["random_projection", 1]).any()


def test_values_planted_in_a_hidden_gauge_are_told_from_others(found):
    assert found["planted", 0].mean() > 0.9
    assert found["observed", 0].mean() < 0.4
    assert found["random_projection", 0].mean() < 0.4


def test_observed_values_of_some_gauge_are_recognised():
    heads = layer()
    factor = torch.diag(torch.linspace(0.3, 0.5, DIM, dtype=torch.float64)).expand(len(heads), -1, -1)
    hidden = Gauge.of(factor, torch.ones_like(factor[:, 0]))
    true = replace(heads, value=gauge_spans(hidden, heads.key[:, None], DIM)[:, 0])
    assert measured([true])["observed", 0].mean() > 0.85


def test_every_layer_is_measured_in_its_own_gauges(found):
    heads, other = layer(), layer(seed=1)
    other = replace(other, index=tuple(entry._replace(layer=1) for entry in other.index))
    both = measured([heads, other])["observed", 0].chunk(2)
    torch.testing.assert_close(both[0], found["observed", 0])
    torch.testing.assert_close(both[1], measured([layer(seed=1)])["observed", 0])


def test_another_gauge_of_the_network_changes_nothing():
    heads = layer()
    before, after = (measured([own], steps=8) for own in (heads, reparametrised(heads, 0, 0)))
    for kind, overlaps in before.items():
        torch.testing.assert_close(overlaps, after[kind], rtol=0, atol=1e-6)


def test_each_input_is_measured_in_the_gauge_of_the_other_half():
    heads = layer()
    moved = replace(heads, key=torch.cat([heads.key[:HEADS] * heads.key[:HEADS], heads.key[HEADS:]]))
    before, after = (measured([own], steps=3)["observed", 0] for own in (heads, moved))
    same = torch.isclose(before, after).reshape(INPUTS, HEADS).all(dim=1)
    # Input 0 is in the first half: it changes its own numbers and those of the other half, not those of its own half.
    assert same.tolist() == [place > 0 and place % 2 == 0 for place in range(INPUTS)]


def test_inputs_in_several_portions_give_the_same_numbers():
    heads = layer()
    portions = [heads.part(start, start + 4 * HEADS) for start in range(0, len(heads), 4 * HEADS)]
    whole, parts = measured([heads], steps=3), measured(portions, steps=3)
    for kind, overlaps in whole.items():
        torch.testing.assert_close(overlaps, parts[kind])


def test_no_more_inputs_are_fitted_than_asked_for():
    heads = layer()
    some, first = measured([heads], steps=3, inputs=2), measured([heads], [heads.part(0, 4 * HEADS)], steps=3)
    for kind, overlaps in some.items():
        torch.testing.assert_close(overlaps, first[kind])


def test_inputs_of_different_lengths_share_a_gauge():
    found = measured([layer(20), layer(30)], steps=3)
    assert all(overlaps.isfinite().all() for overlaps in found.values())


def test_without_the_inputs_of_a_layer_the_null_is_turned_values():
    found = measured([replace(layer(), source=None)], steps=1)
    assert list(found) == [("observed", 0), ("rotated", 0), ("rotated", 1), ("planted", 0)]


def test_heads_with_no_more_tokens_than_values_are_not_measured():
    assert measured([layer(DIM)]) == {}


def test_an_input_that_is_not_finite_is_left_out_of_the_fit():
    heads = layer()
    key = heads.key.clone()
    key[0] = torch.nan
    found = measured([replace(heads, key=key)], steps=1)["observed", 0]
    assert found[0].isnan()
    assert found[1:].isfinite().all()
