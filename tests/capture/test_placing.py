"""To which input a head belongs is known from evidence, or the layer is refused: compared with each input alone."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.capture import capture
from attnaudit.capture.tracing.forms import Fact
from attnaudit.capture.tracing.labels import Labels
from attnaudit.capture.tracing.layout import Side
from attnaudit.errors import CaptureError
from tests.capture.labels import Head, scrambled

WIDTH, HEADS = 32, 4
UNKNOWN = "which input its rows belong to is not known: capture one input at a time"
OF_NO_INPUT = (
    "no input is seen to reach it, as where a model attends over its own parameters: capture one input at a time"
)


def heads_of(result):
    """Every captured head by layer, window, head and input."""
    found = {}
    for layer, heads in zip(result.layer_names, result.layers, strict=True):
        for place, entry in enumerate(heads.index):
            tensors = (getattr(heads, name)[place] for name in ("query", "key", "value", "output", "scale"))
            found[layer, entry.window, entry.head, entry.input] = Head(*tensors)
    return found


def assert_as_alone(model, *inputs):
    """What is captured of several inputs is what is captured of each alone; the refusals, by layer."""
    names = [f"text-{place}" for place in range(len(inputs[0]))]
    try:
        together = capture(model, inputs, names)
    except CaptureError as error:
        return {"all": str(error)}
    found = heads_of(together)
    for place, name in enumerate(names):
        alone = heads_of(capture(model, tuple(own[place : place + 1] for own in inputs), [name]))
        for label, head in found.items():
            if label[-1] == name:
                assert all(map(torch.allclose, head[:5], alone[label][:5], [1e-4] * 5, [1e-5] * 5)), label
    return {refusal.layer: refusal.reason for refusal in together.refusals}


def sequences(count=2, tokens=5):
    return torch.randn(count, tokens, WIDTH, generator=torch.Generator().manual_seed(0))


def ids(count=2):
    return torch.randint(0, 50, (count, 5), generator=torch.Generator().manual_seed(0))


class Base(nn.Module):
    """A table of tokens, memory of its own, and attention after whatever a model below does first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.e, self.qkv = nn.Embedding(50, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.memory = nn.Parameter(torch.randn(6, WIDTH))
        self.v, self.t = (nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(2))
        scrambled(self)

    def attend(self, x):
        """(inputs, tokens, width), by the layer that is known to work."""
        return self.t(x, x, x)[0]


class OwnMemory(Base):
    def forward(self, x):
        return self.attend(self.e(x) + self.v(self.memory, self.memory, self.memory)[0].mean(0))


class Packed(Base):
    """Patches of all pictures follow one another, as many as there are."""

    def forward(self, x, patches):
        return self.attend(self.e(x) + self.v(patches, patches, patches)[0].mean(0))


@pytest.mark.parametrize("count", [2, 4])
def test_attention_over_parameters_belongs_to_no_input(count):
    model = OwnMemory().eval()
    assert assert_as_alone(model, ids(count)) == {"v": OF_NO_INPUT}
    alone = capture(model, ids(1))
    assert alone.layer_names == ("v", "t")
    assert [len(heads) for heads in alone.layers] == [HEADS, HEADS]


@pytest.mark.parametrize("count", [2, 3])
def test_rows_of_inputs_that_follow_one_another_are_not_told_apart_by_their_order(count):
    patches = torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(1))
    result = capture(Packed().eval(), (ids(count), patches))
    assert [(refusal.layer, refusal.reason) for refusal in result.refusals] == [("v", UNKNOWN)]
    assert set(result.layer_names) == {"t"}


class Repeated(Base):
    """Every input has the same learned queries, which attend to one another first, as in DETR."""

    def forward(self, x):
        own = self.memory.expand(len(x), -1, -1)
        own = own + self.v(own, own, own)[0]
        return self.t(own, self.e(x), self.e(x))[0]


@pytest.mark.parametrize("count", [2, 3])
def test_copies_of_one_attention_belong_to_every_input(count):
    assert assert_as_alone(Repeated().eval(), ids(count)) == {}


def test_rows_without_an_input_are_of_that_of_the_others_if_these_have_one():
    sample = torch.tensor([[-1, 3, 3], [-1, 1, 2], [-1, -1, -1], [-1, -2, 4]])[..., None].expand(-1, -1, 2)
    side = Side(sample.float(), Fact(Labels(lambda name: sample if name == "sample" else None)))
    assert side.label("sample")[..., 0].tolist() == [[3, 3, 3], [-1, 1, 2], [-1, -1, -1], [-2, -2, -2]]


def attention(q, k, v):
    return (q @ k.mT / 3).softmax(-1) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


class HeadsFirst(Base):
    """(heads, inputs, tokens, dim), after linear layers of eight bits."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 3, 0, 1, 4)
        return self.way(q, k, v)


@pytest.mark.parametrize("way", [attention, fused])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.skipif(torch.backends.quantized.engine == "none", reason="this torch has no kernels of eight bits")
def test_heads_and_inputs_are_told_apart_where_linear_layers_are_quantised(way, count):
    model = torch.ao.quantization.quantize_dynamic(HeadsFirst(way).eval(), {nn.Linear})
    result = capture(model, sequences(count))
    expected = model.qkv(sequences(count)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    (heads,) = result.layers
    assert {(entry.window, entry.head) for entry in heads.index} == {(0, head) for head in range(HEADS)}
    for place, entry in enumerate(heads.index):
        own = int(entry.input.split("-")[1])
        for tensor, whole in zip((heads.query, heads.key, heads.value), expected, strict=True):
            assert torch.allclose(tensor[place], whole[own, entry.head], atol=1e-5)


class Buffered(Base):
    """The projections of the heads are written into one tensor, one after the other."""

    def forward(self, x):
        parts = []
        for weight in self.qkv.weight.view(3, HEADS, -1, WIDTH):
            buffer = torch.empty(HEADS, len(x), x.shape[1], WIDTH // HEADS)
            for head in range(HEADS):
                buffer[head] = F.linear(x, weight[head])
            parts.append(buffer)
        return attention(*parts)


class Reordered(Base):
    """The inputs are put into another order, one by one, and back."""

    def forward(self, x):
        turned = torch.empty(x.shape)
        for place in range(len(x)):
            turned[place] = x[len(x) - 1 - place]
        return self.attend(turned).flip(0)


class Table(Base):
    """Rows of a table are looked up without a layer for it."""

    def __init__(self, look_up):
        super().__init__()
        self.look_up = look_up

    def forward(self, x):
        return self.attend(self.look_up(self.e.weight, x))


def selected(table, x):
    return table.index_select(0, x.flatten()).view(*x.shape, -1)


@pytest.mark.parametrize("look_up", [lambda table, x: table[x], selected], ids=["index", "index_select"])
@pytest.mark.parametrize("count", [2, 3])
def test_inputs_are_followed_into_rows_of_a_table(look_up, count):
    assert assert_as_alone(Table(look_up).eval(), ids(count)) == {}


class RunningSums(Base):
    """Inputs one after the other in one row, with places that follow from running sums over how long they are."""

    def forward(self, lengths, rows):
        starts = F.pad(lengths.cumsum(0)[:-1], (1, 0))
        places = torch.arange(len(rows)) - starts.repeat_interleave(lengths)
        x = self.e(places) + rows
        return torch.cat([self.attend(part[None]) for part in x.split(lengths.tolist())], dim=1)


def test_a_running_sum_over_inputs_is_of_none_of_them():
    rows = torch.cat(list(sequences()))
    with pytest.raises(CaptureError, match="capture one input at a time"):
        capture(RunningSums().eval(), (torch.tensor([5, 5]), rows))


class Shifted(Base):
    """The first token is the same for every input, as in a decoder."""

    def forward(self, x):
        shifted = x.new_zeros(x.shape)
        shifted[:, 1:] = x[:, :-1]
        shifted[:, 0] = 1
        return self.attend(shifted)


@pytest.mark.parametrize("model", [Buffered, Reordered, Shifted])
@pytest.mark.parametrize("count", [2, 4])
def test_inputs_that_were_written_somewhere_are_known_or_refused(model, count):
    refused = assert_as_alone(model().eval(), sequences(count))
    assert all(UNKNOWN in reason for reason in refused.values())


class Backwards(Base):
    """Inputs in an order that follows from their own numbers."""

    def forward(self, x):
        return self.attend(x[x.mean((1, 2)).argsort()])


def test_rows_of_an_activation_keep_the_input_that_they_had():
    assert assert_as_alone(Backwards().eval(), sequences(4)) == {}


class Averaged(Base):
    """Tokens of segments are averaged, and one query is the mean of all, without axes of length 1."""

    def forward(self, x):
        segments = x.unflatten(1, (2, -1)).mean(2)
        mean = self.t(segments, segments, segments)[0].amax(dim=1)
        q, k, v = (self.qkv(y).chunk(3, -1)[place] for place, y in enumerate((mean[:, None], x, x)))
        return attention(*(y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in (q, k, v)))


class Unfolded(Base):
    """Patches of patches, as in TNT: their pixels are tokens, and those outside of a picture are 0."""

    def __init__(self, padding):
        super().__init__()
        self.padding, self.pixels = padding, nn.Conv2d(3, WIDTH, 2, 2)

    def forward(self, x):
        patches = F.unfold(self.pixels(x), 2, padding=self.padding, stride=2).mT
        return self.attend(patches.reshape(-1, WIDTH, 4).mT)


@pytest.mark.parametrize("count", [2, 3])
def test_inputs_are_followed_through_means_and_unfolded_pictures(count):
    assert assert_as_alone(Averaged().eval(), sequences(count, 6)) == {}
    images = torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert assert_as_alone(Unfolded(0).eval(), images) == {}
    assert assert_as_alone(Unfolded(1).eval(), images) == {}


class Uneven(Base):
    """The first input has twice as many windows as the others together."""

    def forward(self, x):
        windows = x.unflatten(1, (6, 2))
        q, k, v = self.qkv(torch.cat([windows[0], *(own[:1] for own in windows[1:])])).chunk(3, -1)
        return attention(*(y.unflatten(-1, (2, -1)).transpose(1, 2) for y in (q, k, v)))


def test_windows_of_inputs_that_have_different_numbers_of_them_are_not_split_evenly():
    with pytest.raises(CaptureError, match="do not split into 3 inputs"):
        capture(Uneven().eval(), sequences(3, 12))
