"""Captured heads of timm models are those rebuilt by hand from the outputs of their projections."""

import pytest
import torch

from attnaudit.capture import capture
from tests.capture.labels import Label, attention_matrix, by_label

timm = pytest.importorskip("timm")
from timm.models import davit, xcit  # noqa: E402

from tests.capture.rebuilds import rebuilt_layers  # noqa: E402
from tests.capture.tiny_timm import FORMS, build  # noqa: E402

OVER_CHANNELS = (davit.ChannelAttention, xcit.XCA)
every_form = pytest.mark.parametrize(
    ("name", "fused"), FORMS, ids=[f"{name}-{'fused' if fused else 'written out'}" for name, fused in FORMS]
)


def close(ours, theirs, what):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=lambda message: f"{what}: {message}")


def rebuilt_by_label(model, images):
    """Query, key, value, output and attention matrix of every head, under the label it must have."""
    found = {}
    for number, layer in enumerate(rebuilt_layers(model, images)):
        places = layer.output.shape[:3]
        key, value = (x.expand(*places, *x.shape[3:]) for x in (layer.key, layer.value))
        parts = (layer.query, key, value, layer.output, layer.attention)
        for place in torch.cartesian_prod(*map(torch.arange, places)).tolist():
            found[Label(number, *place)] = tuple(x.expand(*places, *x.shape[3:])[tuple(place)] for x in parts)
    return found


def in_order(labelled):
    """The heads of each input and window, as layer follows layer and head follows head."""
    order = {}
    for label in sorted(labelled):
        order.setdefault((label.input, label.window), []).append(labelled[label])
    return order


@every_form
def test_the_rebuild_is_what_the_layers_pass_on(name, fused):
    model, images = build(name, fused)
    for number, layer in enumerate(rebuilt_layers(model, images)):
        merged = layer.merged(layer.output)
        close(merged, layer.passed_on.reshape(merged.shape), f"layer {number}")


@every_form
def test_every_head_is_captured_as_rebuilt(name, fused):
    model, images = build(name, fused)
    result = capture(model, images)
    ours, theirs = in_order(by_label(result)), in_order(rebuilt_by_label(model, images))
    assert {place: len(heads) for place, heads in ours.items()} == {p: len(heads) for p, heads in theirs.items()}
    for place, heads in ours.items():
        for number, (head, parts) in enumerate(zip(heads, theirs[place], strict=True)):
            query, key, value, output, attention = parts
            where = f"head {number} of (input, window) {place}"
            close(head.query, query, f"query of {where}")
            close(head.key, key, f"key of {where}")
            close(head.value, value, f"value of {where}")
            close(head.output, output, f"output of {where}")
            close(attention_matrix(head).float(), attention, f"attention of {where}")
            assert head.scale.item() == pytest.approx(query.shape[-1] ** -0.5)


@every_form
def test_every_head_has_the_label_of_its_layer_and_number(name, fused):
    model, images = build(name, fused)
    ours, theirs = set(by_label(capture(model, images))), set(rebuilt_by_label(model, images))
    if name == "efficientvit":  # its heads run one after another, so that each may count as a layer
        ours, theirs = ({label[1:3] for label in labels} for labels in (ours, theirs))
    assert ours == theirs


@every_form
def test_exactly_the_layers_over_channels_are_refused(name, fused):
    model, images = build(name, fused)
    refusals = capture(model, images).refusals
    expected = {path for path, module in model.named_modules() if isinstance(module, OVER_CHANNELS)}
    assert {refusal.layer for refusal in refusals} == expected
    assert all("channels" in refusal.reason for refusal in refusals)
