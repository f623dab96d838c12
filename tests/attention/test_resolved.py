"""Equal networks have equal attention, however a recipe writes it."""

from dataclasses import replace

import pytest
import torch

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.errors import SettingError
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer

pytest.importorskip("timm")

SMALL = Architecture(image_size=8, patch_size=4, width=12, heads=2, depth=2)


def written(attention, **more):
    return replace(SMALL, attention=attention, **more)


def outputs(architecture):
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return build_vision_transformer(architecture, 0).eval()(images)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            written("symmetric", attention_layers=(1,), other_attention="rpc"),
            written("rpc", attention_layers=(0,), other_attention="symmetric"),
        ),
        (written("rpc", attention_layers=(0,), other_attention="rpc"), written("rpc")),
        (written("rpc", attention_layers=(0, -1), other_attention="softmax"), written("rpc")),
        (written("softmax", attention_layers=(0,), other_attention="scaled"), written("scaled", attention_layers=(1,))),
        (written("softmax", attention_options={"temperature": 1.0}), written("softmax")),
    ],
)
def test_one_network_written_twice_has_one_attention(one, other):
    assert ResolvedAttention.of(one) == ResolvedAttention.of(other)
    torch.testing.assert_close(outputs(one), outputs(other))


@pytest.mark.parametrize(
    "another",
    [
        written("rpc", attention_options={"iterations": 2}, attention_layers=(0,), other_attention="rpc"),
        written("rpc", attention_layers=(0,)),
        written("softmax", attention_options={"temperature": 3.0}),
    ],
)
def test_other_networks_have_another(another):
    plain = replace(another, attention_options={}, attention_layers=None, other_attention="softmax")
    assert ResolvedAttention.of(another) != ResolvedAttention.of(plain)
    assert not torch.equal(outputs(another), outputs(plain))


def test_queries_in_some_layers_of_rpc_attention_are_neither_form():
    mixed = written("rpc", attention_options={"asymmetric": True}, attention_layers=(0,), other_attention="rpc")
    found = ResolvedAttention.of(mixed)
    assert not found.is_asymmetric_rpc
    assert not found.is_iterated_rpc


def test_a_choice_of_no_layer_is_refused():
    with pytest.raises(SettingError, match="attention_layers is empty, so that no block has rpc attention"):
        written("rpc", attention_layers=(), other_attention="symmetric")
