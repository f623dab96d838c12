"""Tensors in lists, tuples, mappings and caches are inputs like others, and what attends over them is never missed."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from attnaudit.capture import capture
from attnaudit.errors import CaptureError
from tests.capture.labels import by_label, scrambled

CHANGED = "its attention weights are multiplied by other factors after the softmax"


class Changing(nn.Module):
    """Attention whose weights are multiplied by something before they meet the values."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.qkv, self.heads = nn.Linear(width, 3 * width), heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / 8**0.5).softmax(-1)
        weights = weights * torch.sigmoid(weights.mean(-1, keepdim=True))
        return weights @ v


class Two(nn.Module):
    """Attends over tokens, and over pictures that it takes out of whatever they come in."""

    def __init__(self, take):
        super().__init__()
        torch.manual_seed(0)
        self.text, self.picture = nn.MultiheadAttention(32, 4, batch_first=True), Changing()
        self.take = take
        scrambled(self)

    def forward(self, x, images):
        return self.text(x, x, x)[0].mean() + self.picture(self.take(images)).mean()


def pictures(*size):
    return torch.randn(*size, generator=torch.Generator().manual_seed(0))


NESTED = {
    "a tensor": (pictures(2, 6, 32), lambda images: images),
    "a list": ([pictures(6, 32), pictures(6, 32)], lambda images: torch.stack(list(images))),
    "a tuple in a mapping": ({"a": (0, pictures(2, 6, 32))}, lambda images: images["a"][1]),
    "lists of lists": ([[pictures(6, 32)], [pictures(6, 32)]], lambda images: torch.stack([own[0] for own in images])),
    "an object": (SimpleNamespace(layers=[pictures(2, 6, 32)]), lambda images: images.layers[0]),
}


@pytest.mark.parametrize(("images", "take"), NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("by_name", [True, False])
def test_attention_over_tensors_in_containers_is_refused_for_the_true_reason(images, take, by_name):
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(1))
    result = capture(Two(take).eval(), {"x": x, "images": images} if by_name else (x, images))
    assert [(refusal.layer, refusal.reason) for refusal in result.refusals] == [("picture", CHANGED)]
    assert result.other_softmaxes == ()
    assert set(result.layer_names) == {"text"}


def test_a_container_that_holds_itself_is_read_once():
    images = [pictures(6, 32), pictures(6, 32)]
    images.append(images)
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(1))
    result = capture(Two(lambda images: torch.stack(images[:2])).eval(), (x, images))
    assert [refusal.layer for refusal in result.refusals] == ["picture"]


class Cloud(nn.Module):
    """Attention over what a model makes of numbers that it hides from torch, such as a file that it reads."""

    def __init__(self, gate):
        super().__init__()
        torch.manual_seed(0)
        self.text, self.picture = nn.MultiheadAttention(32, 4, batch_first=True), Changing()
        self.gate = nn.Linear(32, 3) if gate else None

    def forward(self, x):
        hidden = torch.tensor(x.tolist())
        out = self.text(x, x, x)[0] + self.picture(hidden).transpose(1, 2).flatten(2)
        if self.gate is None:
            return out
        weights = self.gate(x).softmax(-1)
        weights = weights * (weights > 0.2)
        return torch.einsum("bne,bned->bnd", weights, torch.stack([out, -out, 2 * out], 2))


@pytest.mark.parametrize("gate", [True, False])
def test_scores_that_meet_values_are_no_router_although_nothing_is_known_of_their_origin(gate):
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(1))
    result = capture(Cloud(gate).eval(), x)
    assert [(refusal.layer, refusal.reason) for refusal in result.refusals] == [("picture", CHANGED)]
    assert [own.layer for own in result.other_softmaxes] == ["Cloud"] * gate


class Chosen(nn.Module):
    """Pictures of several sizes in a list, or levels of one picture, of which one is attended to."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x, levels):
        return self.attention(levels[-1], levels[-1], levels[-1])[0] + x.mean()


def test_tensors_of_a_list_are_batches_unless_there_are_as_many_as_inputs():
    x, level = torch.randn(2, 5, 32), pictures(2, 6, 32)
    model = Chosen().eval()
    found = by_label(capture(model, (x, [level, level, level])))
    assert len(found) == 2 * 4
    for place in (0, 1):
        own = by_label(capture(model, (x[:1], [level[place : place + 1]])))
        for label, head in own.items():
            assert torch.allclose(found[label._replace(input=place)].key, head.key, atol=1e-5)


@pytest.mark.parametrize("count", [2, 3])
def test_a_list_with_one_tensor_for_each_input_is_not_taken_for_a_list_of_batches(count):
    images = [pictures(count, 32) + place for place in range(count)]

    class Stacked(Chosen):
        def forward(self, x, images):
            y = torch.stack(images)
            return self.attention(y, y, y)[0] + x.mean()

    with pytest.raises(CaptureError, match="which input its rows belong to is not known"):
        capture(Stacked().eval(), (torch.randn(count, 5, 32), images))
