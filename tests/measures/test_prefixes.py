"""What kernel PCA would have to be for a causal head, measured."""

from dataclasses import replace

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.kernel.prefixes import uncentred_values
from attnaudit.measures import MEASURES, MeasureInput, evaluate
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.prefixes import matched_cosines, predicted_from_prefix
from attnaudit.measures.subspace import orthonormal
from attnaudit.protocol import Protocol
from attnaudit.sources import parse_model
from attnaudit.sources.images import choose_images, find_images, image_shards
from attnaudit.sources.model import load_model
from tests.heads import causal, make_heads, random_heads

NAMES = tuple(name for name, measure in MEASURES.items() if measure.only_for is not None)


def numbers(heads, *names):
    found = evaluate([MEASURES[name] for name in names or NAMES], MeasureInput.of(heads))
    return {name: own.values for name, own in found.items()}


def test_heads_that_are_not_causal_have_no_number_and_say_so():
    found = evaluate([MEASURES[name] for name in NAMES], MeasureInput.of(random_heads(0, tokens=40)))
    assert len(found) == 6
    for own in found.values():
        assert own.values.isnan().all()
        assert set(own.problems) == {"it is not causal"}


def test_causal_heads_have_all_of_them():
    for name, values in numbers(causal(random_heads(0, tokens=40))).items():
        assert values.isfinite().all(), name


def test_too_few_tokens_leave_out_what_needs_more():
    found = evaluate([MEASURES[name] for name in NAMES], MeasureInput.of(causal(random_heads(0, tokens=7, dim=4))))
    assert found["prefix_centering_defect"].values.isfinite().all()
    assert found["prefix_span_agreement"].problems[0] == "N = 7 tokens are fewer than 16"
    assert found["uncentred_prefix_overlap"].problems[0] == "N = 7 tokens are fewer than 8"


def test_the_defect_is_zero_for_zero_values_and_positive_for_others():
    heads = causal(random_heads(0))
    zero = replace(heads, value=0 * heads.value, output=0 * heads.output)
    assert (numbers(zero, "prefix_centering_defect")["prefix_centering_defect"] == 0).all()
    assert (numbers(heads, "prefix_centering_defect")["prefix_centering_defect"] > 0.05).all()


def test_longer_keys_are_keys_at_another_temperature():
    heads = causal(random_heads(0, tokens=40))
    longer, colder = replace(heads, key=1.5 * heads.key), replace(heads, scale=1.5**2 * heads.scale)
    before, after, other = (numbers(own) for own in (longer, colder, heads))
    for name, values in before.items():
        torch.testing.assert_close(after[name], values, rtol=1e-7, atol=1e-9)
        assert name == "prefix_rank" or not torch.allclose(other[name], values, rtol=1e-3), name


def test_predictions_agree_if_the_second_half_repeats_the_first():
    half = random_heads(0, tokens=20)
    twice = make_heads(*(torch.cat([own, own], dim=1) for own in (half.query, half.key, half.value)))
    found = numbers(causal(twice))
    assert found["prefix_span_agreement"] == pytest.approx([1, 1], abs=1e-9)
    assert found["prefix_column_agreement"] == pytest.approx([1, 1], abs=1e-9)


def test_a_last_token_far_from_the_others_turns_what_is_predicted_for_them():
    heads = random_heads(0, tokens=40)
    near, far = heads.key.clone(), heads.key.clone()
    near[:, -1] = near[:, :-1].mean(dim=1)
    far[:, -1] *= 8
    effects = [
        numbers(causal(make_heads(heads.query, key, heads.value)), "last_token_effect")["last_token_effect"]
        for key in (near, far)
    ]
    assert (effects[0] < effects[1]).all()


def test_values_of_kernel_pca_without_centring_overlap_with_it_on_the_whole_sequence():
    heads = random_heads(0, tokens=15)  # only the whole is long enough for 2d tokens
    values = uncentred_values(heads.key, 4, heads.scale)
    planted = causal(make_heads(heads.query, heads.key, values))
    short = replace(
        planted,
        query=planted.query[:, :10],
        key=planted.key[:, :10],
        value=uncentred_values(heads.key[:, :10], 4, heads.scale),
        output=planted.output[:, :10],
        bias=planted.bias[:, :10, :10],
    )
    assert numbers(short, "uncentred_prefix_overlap")["uncentred_prefix_overlap"] == pytest.approx([1, 1], abs=1e-9)
    assert (numbers(causal(heads), "uncentred_prefix_overlap")["uncentred_prefix_overlap"] < 0.9).all()


@pytest.mark.realdata
def test_predictions_for_deit_taken_as_a_sequence_depend_on_later_tokens_as_the_specification_says(data_folder):
    """64 against 197 tokens, 16 components: spans of the layers agree to .76-.86, columns to .33-.47."""
    model = load_model(parse_model("deit_tiny_patch16_224"))
    paths = find_images(data_folder / "imagenet_val")[:2]
    prepared = image_shards(choose_images(paths, data_folder, None, 0), 2)[0].prepare(model, Protocol.EXACT)
    spans, columns = [], []
    for heads in capture(model.module, prepared.inputs).layers:
        both = predicted_from_prefix(KeyKernel(heads), 64)
        first, second = map(orthonormal, both)
        spans.append(float(torch.linalg.svdvals(first.mT @ second).square().mean()))
        columns.append(float(matched_cosines(both).mean()))
    assert min(spans) > 0.70
    assert max(spans) < 0.90
    assert min(columns) > 0.30
    assert max(columns) < 0.55
