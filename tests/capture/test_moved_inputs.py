"""Heads are credited to the input that made them, whatever a model does with the inputs of a batch before."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.capture import capture
from attnaudit.errors import CaptureError
from tests.capture.labels import attention_matrix, by_label

transformers = pytest.importorskip("transformers")

WIDTH, HEADS, DIM = 12, 3, 4


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def written_out(q, k, v):
    return (q @ k.mT * DIM**-0.5).softmax(-1) @ v


class Moved(nn.Module):
    """Attention on inputs that `move` has put into the order of their first element."""

    def __init__(self, move, attend=fused):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.move, self.attend = nn.Linear(WIDTH, 3 * WIDTH), move, attend

    def project(self, x):
        return self.qkv(x).unflatten(-1, (3, HEADS, DIM)).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        return self.attend(*self.project(self.move(x, x[:, 0, 0].argsort())))


def inputs():
    x = torch.randn(4, 6, WIDTH, generator=torch.Generator().manual_seed(3))
    x[:, 0, 0] = torch.tensor([0.3, 0.1, 0.4, 0.2])
    return x


def by_slices(x, order, start):
    y = start(x)
    for place, row in zip(order, x, strict=True):
        y[place] = row
    return y


def in_halves(x, order):
    y = torch.empty_like(x)
    y[..., :5], y[..., 5:] = x[order][..., :5], x[order][..., 5:]
    return y


def by_index_put(x, order):
    y = torch.zeros_like(x)
    y[order] = x
    return y


def over_itself(x, order):
    y = x.clone()
    y[order] = x
    return y


def by_tokens(x, order):
    """As the experts of a mixture are joined: tokens of all inputs, some by this expert and some by that."""
    places = (order[:, None] * x.shape[1] + torch.arange(x.shape[1])).flatten()
    tokens, y = x.flatten(0, 1), torch.zeros_like(x).flatten(0, 1)
    for expert in (slice(0, 5), slice(5, 5), slice(5, None)):
        y.index_add_(0, places[expert], 0.5 * tokens[expert])
        y.index_add_(0, places[expert], 0.5 * tokens[expert])
    return y.view_as(x)


def after_nothing(x, order):
    """Nothing is written into nothing, which then stands before the inputs."""
    return torch.cat((x[:0].clone().index_put_((order[:0],), x[:0]), by_index_put(x, order)))


def index_for(x, order):
    return order[:, None, None].expand_as(x)


FOLLOWED = {
    "index": lambda x, order: x[order],
    "index_put": by_index_put,
    "index_put over itself": over_itself,
    "index_put of nothing": after_nothing,
    "index_add": lambda x, order: torch.zeros_like(x).index_add(0, order, x),
    "index_add of experts": by_tokens,
    "index_copy": lambda x, order: torch.zeros_like(x).index_copy(0, order, x),
    "index_copy over itself": lambda x, order: x.index_copy(0, order, x),
    "scatter": lambda x, order: torch.zeros_like(x).scatter(0, index_for(x, order), x),
    "scatter_add": lambda x, order: torch.zeros_like(x).scatter_add(0, index_for(x, order), x),
    "masked_scatter": lambda x, order: x.masked_scatter(torch.ones(len(x), 1, 1, dtype=torch.bool), x[order]),
    "copy_": lambda x, order: x.clone().copy_(x[order]),
    "copy_ into a view": lambda x, order: x.clone().unsqueeze(0).copy_(x[order])._base,
    "slices": lambda x, order: by_slices(x, order, torch.zeros_like),
    "slices over itself": lambda x, order: by_slices(x, order, torch.clone),
    "halves": in_halves,
}


@pytest.mark.parametrize("attend", [fused, written_out])
@pytest.mark.parametrize("name", FOLLOWED)
def test_heads_are_those_of_the_input_that_they_are_named_after(name, attend):
    model, x = Moved(FOLLOWED[name], attend), inputs()
    heads = by_label(capture(model, x))
    assert {(label.input, label.head) for label in heads} == {(i, h) for i in range(len(x)) for h in range(HEADS)}
    for label, head in heads.items():
        alone = by_label(capture(Moved(lambda x, order: x, attend), x[label.input : label.input + 1]))
        for part in ("query", "key", "value", "output"):
            expected = getattr(alone[label._replace(input=0)], part)
            torch.testing.assert_close(getattr(head, part), expected, msg=lambda m, w=f"{part} of {label}": f"{w}: {m}")


def put(x, order):
    places = (order[:, None] * x[0].numel() + torch.arange(x[0].numel())).flatten()
    return torch.zeros_like(x).put_(places, x.flatten())


def strided(x, order):
    return x.as_strided(x.shape, x.stride()).clone()


def added_up(x, order):
    return torch.zeros_like(x).index_add(0, order // 2, x)


def sorted_by_feature(x, order):
    return x.sort(0).values


NOT_FOLLOWED = [put, strided, added_up, sorted_by_feature]


@pytest.mark.parametrize("attend", [fused, written_out])
@pytest.mark.parametrize("move", NOT_FOLLOWED)
def test_heads_of_unknown_or_several_inputs_are_refused_and_an_input_alone_is_not(move, attend):
    model, x = Moved(move, attend), inputs()
    with pytest.raises(CaptureError, match=r"which input its heads belong to|across the inputs|several inputs"):
        capture(model, x)
    assert capture(model, x[:1]).refusals == ()


def test_what_is_added_to_tokens_does_not_hide_their_input():
    model, x = Moved(lambda x, order: put(x, order) + x), inputs()
    assert {label.input for label in by_label(capture(model, x))} == set(range(len(x)))


@pytest.mark.parametrize("way", ["eager", "sdpa"])
def test_the_experts_of_jetmoes_attention_give_heads_to_the_right_inputs(way):
    config = transformers.JetMoeConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_key_value_heads=2, kv_channels=8, intermediate_size=32,
        num_local_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.JetMoeModel(config).eval()
    ids = torch.randint(5, 90, (2, 7), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**batch, output_attentions=True).attentions
    model.set_attn_implementation(way)
    result = capture(model, batch)
    heads = by_label(result)
    assert result.refusals == ()
    assert len(heads) == sum(len(layer) * layer.shape[1] for layer in expected)
    for label, head in heads.items():
        assert label.window == 0
        theirs = expected[label.layer][label.input, label.head].double()
        torch.testing.assert_close(
            attention_matrix(head), theirs, rtol=0, atol=1e-5, msg=lambda m, w=label: f"{w}: {m}"
        )


def test_tokens_made_by_a_softmax_keep_their_input():
    """As Ovis2 makes tokens of an image: probabilities times a table, written among the tokens of a text."""
    table = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(5))

    def move(x, order):
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
        mask[:, 2:4] = True
        return x.masked_scatter(mask[..., None], (x @ table).softmax(-1)[:, 2:4] @ table)

    together = by_label(capture(Moved(move), inputs()))
    for label, head in together.items():
        alone = by_label(capture(Moved(move), inputs()[label.input : label.input + 1]))
        torch.testing.assert_close(head.output, alone[label._replace(input=0)].output)


def test_tokens_of_many_features_are_followed():
    def wide(x, order):
        long = x.repeat(1, 50, 1200)  # more elements than a label may have one by one
        return torch.zeros_like(long).index_add(0, order, long)[:, : x.shape[1], :WIDTH]

    x = inputs()
    together = by_label(capture(Moved(wide), x))
    for label, head in together.items():
        alone = by_label(capture(Moved(lambda x, order: x), x[label.input : label.input + 1]))
        torch.testing.assert_close(head.output, alone[label._replace(input=0)].output)


def test_a_cache_that_is_longer_than_what_is_written_into_it_keeps_the_inputs():
    def cached(q, k, v):
        places = torch.arange(2, 2 + k.shape[2])
        k, v = (torch.zeros(*x.shape[:2], 9, DIM).index_copy_(2, places, x) for x in (k, v))
        return written_out(q, k, v)

    x = inputs()
    together = by_label(capture(Moved(lambda x, order: x[order], cached), x))
    for label, head in together.items():
        alone = by_label(capture(Moved(lambda x, order: x, cached), x[label.input : label.input + 1]))
        torch.testing.assert_close(head.output, alone[label._replace(input=0)].output)


def in_parts(x, order):
    return torch.zeros_like(x).index_copy(1, torch.arange(x.shape[1]), x)


@pytest.mark.parametrize("attend", [fused, written_out])
def test_one_input_is_captured_where_it_cannot_be_followed(monkeypatch, attend):
    monkeypatch.setattr("attnaudit.capture.tracing.labels._LARGEST", 4)
    with pytest.raises(CaptureError, match="which input its heads belong to cannot be followed"):
        capture(Moved(in_parts, attend), inputs())
    assert len(capture(Moved(in_parts, attend), inputs()[:1]).layers) == 1
