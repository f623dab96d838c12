"""Fits to one half of the inputs, and numbers of the other half."""

from dataclasses import replace

import pytest
import torch

from attnaudit.measures import REFERENCES, select
from attnaudit.measures.cross_fits import CrossFits
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.references.base import ReferenceInput
from attnaudit.measures.references.planted import NOISES
from attnaudit.theories.base import no_prediction
from tests.theories.layers import HALVES, HEADS, INPUTS, layer


def measured(batches, theory="keys-linear", sample=(), references=tuple(REFERENCES), **more):
    """By reference, repeat and measure, the numbers of all heads."""
    fits = CrossFits(select(theories=[theory], references=references, repeats=2, **more), HALVES, sample)
    for heads in batches:
        fits.add(KeyKernel(heads))
    fits.fit()
    found = {}
    for heads in batches:
        for own in fits.measured(KeyKernel(heads)):
            for measure, values in own.values.items():
                found.setdefault((own.key.reference, own.key.repeat, measure), []).append(values)
    return {key: torch.cat(parts) for key, parts in found.items()}


R2 = "explained_variance"


def test_observed_heads_nulls_context_and_planted_heads_are_measured():
    found = measured([layer()])
    assert [key[:2] for key in found if key[2] == R2] == [
        ("observed", 0),
        ("random_keys", 0),
        ("random_keys", 1),
        ("rotated", 0),
        ("other_keys", 0),
        ("random_projection", 0),
        ("planted", 0),
    ]
    assert ("observed", 0, "identifiable") in found
    assert all(values.shape == (INPUTS * HEADS,) and values.isfinite().all() for values in found.values())


def test_each_input_is_measured_with_the_fit_to_the_other_half():
    heads = layer()
    moved = replace(heads, value=torch.cat([heads.value[:HEADS].square(), heads.value[HEADS:]]))
    before, after = (measured([own])["observed", 0, R2] for own in (heads, moved))
    same = torch.isclose(before, after).reshape(INPUTS, HEADS).all(dim=1)
    # Input 0 is in the first half: it changes its own numbers and those of the other half, not those of its own half.
    assert same.tolist() == [place > 0 and place % 2 == 0 for place in range(INPUTS)]


def test_inputs_in_several_portions_give_the_same_numbers():
    heads = layer()
    portions = [heads.part(start, start + 2 * HEADS) for start in range(0, len(heads), 2 * HEADS)]
    whole, parts = measured([heads]), measured(portions)
    for key, values in whole.items():
        torch.testing.assert_close(values, parts[key])


def test_head_by_head_gives_the_same_numbers():
    heads = layer()
    alone = [heads.part(place, place + 1) for place in range(len(heads))]
    whole, parts = measured([heads]), measured(alone)
    for key in (("observed", 0, R2), ("random_keys", 1, R2), ("planted", 0, R2)):
        torch.testing.assert_close(whole[key], parts[key])


def test_a_random_projection_is_one_map_for_all_inputs():
    heads = layer()
    heads = replace(heads, value=heads.value * torch.arange(1, len(heads) + 1).double()[:, None, None])
    assert (measured([heads], "inputs-lowrank")["random_projection", 0, R2] > 1 - 1e-9).all()


@pytest.mark.parametrize(
    ("theory", "null"), [("keys-linear", "random_keys"), ("kernel-regression", "random_projection")]
)
def test_every_repeat_of_the_null_and_every_seed_is_a_draw_of_its_own(theory, null):
    draws = [measured([layer()], theory, seed=seed)[null, repeat, R2] for seed in (0, 1) for repeat in (0, 1)]
    for place, one in enumerate(draws):
        assert not any(torch.equal(one, other) for other in draws[:place])


def test_other_keys_are_those_of_the_next_head():
    heads = layer()
    given = ReferenceInput(heads, no_prediction(heads, ""), None, 0)
    changed = REFERENCES["other_keys"].apply(given, KeyKernel(heads), for_fits=True)
    assert torch.equal(changed.key[0], heads.key[1])
    assert torch.equal(changed.key[HEADS - 1], heads.key[0])
    assert torch.equal(changed.value, heads.value)
    assert REFERENCES["other_keys"].apply(given, KeyKernel(heads)) is None  # only of fitted theories


@pytest.mark.parametrize("theory", ["keys-linear", "kernel-regression", "low-pass", "mean-shift"])
def test_noise_in_planted_heads_lowers_their_numbers_on_the_sample(theory):
    found = measured([layer()], theory, ["input-0", "input-1"])
    curve = [values for (reference, _, _), values in found.items() if reference == "planted_with_noise"]
    assert all(len(values) == 2 * HEADS for values in curve)
    means = [float(values.mean()) for values in curve]
    assert means[0] > means[-1]


def test_noise_replaces_its_share_of_planted_values():
    """With a share ε of noise as large as the values, V - V̂ has the size ε√2 beside √((1-ε)² + ε²) of V."""
    found = measured([layer()], sample=["input-0", "input-1"])
    for place, noise in enumerate(NOISES):
        left = 1 - 2 * noise**2 / ((1 - noise) ** 2 + noise**2)
        assert found["planted_with_noise", place, R2].mean().item() == pytest.approx(left, abs=0.25)


def test_without_inputs_of_the_layer_the_null_is_turned_values():
    found = measured([layer(source=False)])
    assert ("random_keys", 0, R2) not in found
    assert ("rotated", 1, R2) in found


def test_only_references_that_are_asked_for_are_measured():
    found = measured([layer()], references=["random_keys"])
    assert {key[0] for key in found} == {"observed", "random_keys"}


def test_an_input_that_is_not_finite_is_left_out_of_the_fit():
    heads = layer()
    value = heads.value.clone()
    value[0] = torch.nan
    found = measured([replace(heads, value=value)])["observed", 0, R2]
    assert found[:HEADS].isnan().all()
    assert found[HEADS:].isfinite().all()


def test_a_single_input_has_no_numbers_of_fitted_theories():
    heads = layer(inputs=1)
    assert measured([heads])["observed", 0, R2].isnan().all()
    assert measured([heads], "kernel-regression")["observed", 0, R2].isfinite().all()
