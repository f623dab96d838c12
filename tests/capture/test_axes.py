"""Which input, head and window a head is labelled with, whatever the order of a model's axes."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.capture import capture
from attnaudit.errors import CaptureError
from tests.capture.labels import Label, by_label

WIDTH, DIM, WINDOWS = 12, 4, 2


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def written_out(q, k, v):
    return ((q * DIM**-0.5) @ k.mT).softmax(-1) @ v


def by_bmm(q, k, v):
    return torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) / DIM**0.5, dim=-1), v)


def by_baddbmm(q, k, v):
    scores = torch.baddbmm(q.new_zeros(len(q), q.shape[1], k.shape[1]), q, k.mT, beta=0, alpha=DIM**-0.5)
    return torch.bmm(scores.softmax(-1), v)


def value_left(q, k, v):
    return (v.mT @ (q @ k.mT * DIM**-0.5).softmax(-1).mT).mT


def by_einsum(scores, weighted):
    return lambda q, k, v: torch.einsum(weighted, (torch.einsum(scores, q, k) * DIM**-0.5).softmax(-1), v)


# Each layout: what it makes of (batch, windows, heads, tokens, dim) tensors, and how it attends.
LAYOUTS = {
    "(B,H,N,d)": (1, lambda t: t[:, 0], (sdpa, written_out, value_left)),
    "(H,B,N,d)": (1, lambda t: t[:, 0].transpose(0, 1), (sdpa, written_out, value_left)),
    "(B*H,N,d)": (1, lambda t: t.flatten(0, 2), (sdpa, written_out, by_bmm, by_baddbmm)),
    "(H*B,N,d)": (1, lambda t: t[:, 0].transpose(0, 1).flatten(0, 1), (sdpa, written_out, by_bmm, by_baddbmm)),
    "(B,N,H,d)": (1, lambda t: t[:, 0].transpose(1, 2), (by_einsum("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),)),
    "(N,B,H,d)": (1, lambda t: t[:, 0].permute(2, 0, 1, 3), (by_einsum("ibnd,jbnd->bnij", "bnij,jbnd->ibnd"),)),
    "(B,H,W,N,d)": (WINDOWS, lambda t: t.transpose(1, 2), (sdpa, written_out, value_left)),
    "(B,W,H,N,d)": (WINDOWS, lambda t: t, (sdpa, written_out, value_left)),
    "(B*W,H,N,d)": (WINDOWS, lambda t: t.flatten(0, 1), (sdpa, written_out)),
    "(B*H,W,N,d)": (WINDOWS, lambda t: t.transpose(1, 2).flatten(0, 1), (sdpa, written_out)),
    "(B*W*H,N,d)": (WINDOWS, lambda t: t.flatten(0, 2), (sdpa, written_out, by_bmm)),
    "(B,W,N,H,d)": (WINDOWS, lambda t: t.transpose(2, 3), (by_einsum("bwqhd,bwkhd->bwhqk", "bwhqk,bwkhd->bwqhd"),)),
}
WAYS = [(name, number) for name, (_, _, ways) in LAYOUTS.items() for number in range(len(ways))]
WAY_NAMES = [f"{name} {LAYOUTS[name][2][number].__name__.replace('<lambda>', 'einsum')}" for name, number in WAYS]


class Layer(nn.Module):
    """A projection, then `attend` on (batch, windows, heads, tokens, dim) tensors; windows are runs of tokens."""

    def __init__(self, heads, windows, attend, windows_first=False):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(WIDTH, 3 * heads * DIM)
        self.heads, self.windows, self.attend, self.windows_first = heads, windows, attend, windows_first

    def split(self, x):
        """Queries, keys and values; with `windows_first`, windows are already inputs of the projection."""
        batch, tokens, _ = x.shape
        inside = (batch, self.windows, tokens // self.windows)
        made = self.qkv(x.reshape(-1, inside[2], WIDTH)) if self.windows_first else self.qkv(x)
        return made.reshape(*inside, 3, self.heads, DIM).permute(3, 0, 1, 4, 2, 5)

    def forward(self, x):
        return self.attend(*self.split(x))


def inputs(batch):
    return torch.randn(batch, 8, WIDTH, generator=torch.Generator().manual_seed(3))


def expected_heads(model, x):
    """Query, key and value by label, straight from the projection."""
    with torch.no_grad():
        made = model.split(x)
    places = torch.cartesian_prod(*map(torch.arange, made.shape[1:4])).tolist()
    return {Label(0, *place): made[(slice(None), *place)] for place in places}


def assert_labels_hold(model, batch):
    """In a batch, and of every input by itself, the head with a label is the one the projection made for it."""
    x = inputs(batch)
    together = by_label(capture(model, x))
    expected = expected_heads(model, x)
    assert set(together) == set(expected)
    for label, (query, key, value) in expected.items():
        parts = (query, key, value, F.scaled_dot_product_attention(query, key, value))
        assert together[label].scale.item() == pytest.approx(query.shape[-1] ** -0.5)
        for name, part in zip(("query", "key", "value", "output"), parts, strict=True):
            what = f"{name} of {label}"
            torch.testing.assert_close(getattr(together[label], name), part, msg=lambda m, w=what: f"{w}: {m}")
    for place in range(batch):
        alone = by_label(capture(model, x[place : place + 1]))
        assert set(alone) == {label._replace(input=0) for label in expected if label.input == place}
        for label, head in alone.items():
            torch.testing.assert_close(head.output, together[label._replace(input=place)].output)


@pytest.mark.parametrize(("batch", "heads"), [(3, 2), (2, 3), (2, 2)])
@pytest.mark.parametrize(("name", "number"), WAYS, ids=WAY_NAMES)
def test_labels_hold_whatever_the_order_of_axes(name, number, batch, heads):
    windows, arranged, ways = LAYOUTS[name]

    def attend(q, k, v):
        return ways[number](*(arranged(t) for t in (q, k, v)))

    assert_labels_hold(Layer(heads, windows, attend), batch)


@pytest.mark.parametrize(("batch", "heads"), [(3, 2), (2, 2)])
@pytest.mark.parametrize("name", ["(B*W,H,N,d)", "(B*W*H,N,d)", "(B*H,W,N,d)"])
@pytest.mark.parametrize("way", [sdpa, written_out])
def test_labels_hold_where_windows_join_the_batch_before_the_projection(name, way, batch, heads):
    def attend(q, k, v):
        return way(*(LAYOUTS[name][1](t) for t in (q, k, v)))

    assert_labels_hold(Layer(heads, WINDOWS, attend, windows_first=True), batch)


class TokensFirst(Layer):
    """torch's multi-head layer on (tokens, batch, width)."""

    def __init__(self, heads, batch_first):
        super().__init__(heads, 1, None)
        self.attention = nn.MultiheadAttention(WIDTH, heads, batch_first=batch_first)

    def split(self, x):
        parts = F.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        return parts.reshape(len(x), 1, -1, 3, self.heads, WIDTH // self.heads).permute(3, 0, 1, 4, 2, 5)

    def forward(self, x):
        x = x if self.attention.batch_first else x.transpose(0, 1)
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("batch", "heads"), [(3, 2), (2, 3), (2, 2)])
def test_labels_of_multihead_attention_hold(batch, heads, batch_first):
    assert_labels_hold(TokensFirst(heads, batch_first), batch)


def loop_with_matrices(q, k, v):
    """One input and one head at a time."""
    rows = [[written_out(q[i, 0, h], k[i, 0, h], v[i, 0, h]) for h in range(q.shape[2])] for i in range(len(q))]
    return torch.stack([torch.stack(row) for row in rows])


def loop_over_heads(q, k, v):
    return torch.stack([written_out(q[:, 0, h], k[:, 0, h], v[:, 0, h]) for h in range(q.shape[2])], dim=1)


def loop_over_inputs(q, k, v):
    return torch.stack([written_out(q[i, 0], k[i, 0], v[i, 0]) for i in range(len(q))])


def mapped_over_heads(q, k, v):
    return torch.vmap(written_out, in_dims=2, out_dims=1)(q[:, 0][:, None], k[:, 0][:, None], v[:, 0][:, None])


def among(head, others):
    """Whether a pair of input and values is one of several."""
    return any(head[0] == other[0] and torch.equal(head[1], other[1]) for other in others)


@pytest.mark.parametrize("attend", [loop_with_matrices, loop_over_heads, loop_over_inputs, mapped_over_heads])
@pytest.mark.parametrize(("batch", "heads"), [(3, 2), (2, 2)])
def test_loops_are_recognised_or_refused_and_never_missed(attend, batch, heads):
    model, x = Layer(heads, 1, attend), inputs(batch)
    try:
        result = capture(model, x)
    except CaptureError as error:
        why = str(error)
    else:
        why = " ".join(str(entry) for entry in result.refusals)
        made = [(label.input, parts[2]) for label, parts in expected_heads(model, x).items()]
        found = [(label.input, head.value) for label, head in by_label(result).items()]
        assert all(among(head, made) for head in found)
        assert why or all(among(head, found) for head in made)
    assert "no attention" not in why


class Windowed(Layer):
    """Eight windows, which are inputs to torch, of which some are kept."""

    def __init__(self, kept, attend=sdpa):
        super().__init__(2, 8, lambda *parts: attend(*(own.flatten(0, 1) for own in parts)))
        self.windows_kept = kept


def long_inputs():
    return torch.randn(3, 32, WIDTH, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize(("kept", "chosen"), [(1, [4]), (2, [2, 6]), (3, [1, 4, 6]), (8, range(8)), (20, range(8))])
def test_of_many_windows_a_layer_may_keep_some_that_are_evenly_spaced(kept, chosen):
    found = capture(Windowed(kept), long_inputs())
    everything, heads = by_label(capture(Windowed(None), long_inputs())), by_label(found)
    numbers = {window: number for number, window in enumerate(chosen)}
    expected = {own._replace(window=numbers[own.window]): own for own in everything if own.window in numbers}
    assert set(heads) == set(expected)
    for label, before in expected.items():
        for name in ("query", "key", "value", "output"):
            assert torch.equal(getattr(heads[label], name), getattr(everything[before], name)), f"{name} of {label}"
    (traits,) = found.traits.values()
    assert traits.left_out == 8 - len(chosen)
    assert ("left out" in str(traits)) == (len(chosen) < 8)


def test_windows_that_are_kept_have_their_own_source():
    model = Windowed(3)
    (heads,) = capture(model, long_inputs()).layers
    made = F.linear(heads.source, model.qkv.weight, model.qkv.bias)
    values = made.unflatten(-1, (3, 2, DIM))[:, :, 2].transpose(1, 2).flatten(0, 1)
    torch.testing.assert_close(heads.value, values)


def test_windows_that_are_kept_have_the_mask_that_all_share():
    found = capture(Windowed(3, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), long_inputs())
    (heads,), (traits,) = found.layers, found.traits.values()
    assert heads.bias.shape == (18, 4, 4)
    assert traits.causal
    assert found.certificate.worst < 1e-6


def turned_in_place(q, k, v):
    """As `transpose(1, 2)` of (inputs, tokens, heads, dim) makes them, but in place."""
    return written_out(*(t[:, 0].transpose(1, 2).contiguous().transpose_(1, 2) for t in (q, k, v)))


def swapped_in_place(q, k, v):
    return written_out(*(t[:, 0].transpose(1, 2).contiguous().swapaxes_(1, 2).swapdims_(2, 3).mT for t in (q, k, v)))


def squeezed_in_place(q, k, v):
    q, k, v = (t.transpose(1, 2).contiguous().squeeze_(2).unsqueeze_(0).squeeze_() for t in (q, k, v))
    return written_out(q, k, v)


def keys_turned_in_place(q, k, v):
    """Scores with their scale and mask, turned over and back."""
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    scores = (q[:, 0] @ k[:, 0].mT * DIM**-0.5).masked_fill(mask, -torch.inf)
    return scores.unsqueeze_(1).transpose_(-1, -2).squeeze_(1).transpose_(-1, -2).softmax(-1) @ v[:, 0]


@pytest.mark.parametrize("attend", [turned_in_place, swapped_in_place, squeezed_in_place])
@pytest.mark.parametrize(("batch", "heads"), [(3, 8), (2, 8), (8, 8), (3, 2), (2, 2)])
def test_labels_hold_where_axes_are_changed_in_place(attend, batch, heads):
    assert_labels_hold(Layer(heads, 1, attend), batch)


def test_the_mask_of_scores_that_are_turned_in_place_is_theirs():
    found = capture(Layer(2, 1, keys_turned_in_place), inputs(3))
    (heads,), (traits,) = found.layers, found.traits.values()
    assert traits.causal
    assert len(heads) == 6
    assert found.certificate.worst < 1e-6


class SequenceFirst(Layer):
    """Tokens come first inside of it; attention is written out there."""

    def forward(self, x):
        made = self.qkv(x.clone().transpose_(0, 1)).unflatten(-1, (3, self.heads, DIM))  # tokens, inputs, 3, heads, dim
        return written_out(*made.permute(2, 1, 3, 0, 4))


@pytest.mark.parametrize(("batch", "heads"), [(8, 2), (3, 2), (2, 2)])
def test_inputs_are_told_from_tokens_that_come_first_after_a_move_in_place(batch, heads):
    assert_labels_hold(SequenceFirst(heads, 1, None), batch)
