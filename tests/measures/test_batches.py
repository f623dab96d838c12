"""Cutting layers into batches: every head once, with its own neighbours, and the same numbers."""

import gc
import weakref

import pyarrow as pa
import pytest
import torch

from attnaudit.capture import HeadId, Heads, capture
from attnaudit.measures import REFERENCES, select
from attnaudit.measures import batches as cutting
from attnaudit.measures.batches import batch_size, batches, joined_layers, matrix_bytes, with_following
from attnaudit.measures.measuring import measure_heads
from attnaudit.records.rows import rows_of
from attnaudit.theories import THEORIES

KEY = ["input", "layer", "head", "theory", "reference", "measure"]


def layer(number=0, inputs=3, heads=2, tokens=17, dim=4, source=True):
    generator = torch.Generator().manual_seed(number)
    count = inputs * heads
    query, key, value = (torch.randn(count, tokens, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    return Heads(
        query,
        key,
        value,
        output=torch.softmax(query @ key.mT / 2, dim=-1) @ value,
        scale=torch.full((count,), 0.5, dtype=torch.float64),
        index=tuple(HeadId("model", f"input-{place // heads}", number, place % heads) for place in range(count)),
        source=torch.randn(inputs, tokens, 6, generator=generator, dtype=torch.float64) if source else None,
    )


def tables_of(layers, selection):
    return [rows_of([measurement]) for measurement in measure_heads(layers, selection)]


@pytest.fixture
def allowing(monkeypatch):
    """Let so many heads of a layer into a batch."""

    def allow(heads, count):
        monkeypatch.setitem(cutting.BATCH_BYTES, "cpu", count * matrix_bytes(heads))

    return allow


@pytest.mark.parametrize(("fitting", "size"), [(6, 6), (100, 6), (5, 4), (4, 4), (3, 2), (2, 2), (1, 1)])
def test_a_batch_holds_whole_inputs_or_a_single_head(allowing, fitting, size):
    heads = layer()
    allowing(heads, fitting)
    assert batch_size(heads) == size
    found = [batch for batch, _ in batches(heads, None)]
    assert [entry for batch in found for entry in batch.index] == list(heads.index)
    assert max(len(batch) for batch in found) == size


@pytest.mark.parametrize(("heads_per_input", "joins"), [(1, 4), (2, 3)])
def test_measures_and_references_do_not_notice_that_layers_are_joined(heads_per_input, joins):
    known = [layer(number, heads=heads_per_input) for number in range(2)]
    layers = [*known, layer(2, heads=heads_per_input, source=False), layer(3, tokens=19)]
    selection = select(references=REFERENCES, theories=("kpca", "pca-inputs"))
    joined = list(joined_layers(layers, where=lambda heads: True))
    assert len(joined) == joins
    apart, together = (
        {tuple(row[name] for name in KEY): row["value"] for row in pa.concat_tables(tables).to_pylist()}
        for tables in (tables_of(layers, selection), tables_of(joined, selection))
    )
    assert apart.keys() == together.keys()
    for key, value in apart.items():
        expected = None if value is None else pytest.approx(value, rel=1e-6, abs=1e-6)
        assert together[key] == expected, key


@pytest.mark.parametrize(("heads_per_input", "fitting"), [(1, 1), (1, 2), (2, 1), (2, 3), (3, 4)])
def test_measures_and_references_do_not_notice_the_cuts(allowing, heads_per_input, fitting):
    """Up to rounding, which in degrees and near 0 is 1e-6: arccos has an infinite slope there."""
    layers = [layer(number, heads=heads_per_input) for number in range(2)]
    selection = select(references=REFERENCES, theories=THEORIES)
    whole = pa.concat_tables(tables_of(layers, selection))
    allowing(layers[0], fitting)
    cut = pa.concat_tables(tables_of(layers, selection))
    assert [whole[name].to_pylist() for name in KEY] == [cut[name].to_pylist() for name in KEY]
    torch.testing.assert_close(
        torch.tensor(whole["value"].to_numpy()), torch.tensor(cut["value"].to_numpy()), rtol=1e-6, atol=1e-5
    )


def test_a_layer_is_followed_by_the_next_and_the_last_by_the_first():
    one, two, three = (layer(number) for number in range(3))
    assert list(with_following([one, two, three])) == [(one, two), (two, three), (three, one)]
    assert list(with_following([one])) == [(one, None)]


def test_a_capture_alone_holds_its_layers():
    """Without waiting for the garbage collector: layers are large."""
    timm = pytest.importorskip("timm")
    gc.disable()
    try:
        captured = capture(timm.create_model("test_vit"), torch.zeros(1, 3, 160, 160))
        values = [weakref.ref(heads.value) for heads in captured.layers]
        del captured
        assert [value() for value in values] == [None] * len(values)
    finally:
        gc.enable()


def test_layers_are_let_go_when_they_are_measured():
    alive = weakref.WeakSet()

    def layers():
        for number in range(6):
            made = layer(number)
            alive.add(made.value)
            yield made
            del made

    most = 0
    for _ in measure_heads(layers(), select(measures=["eigenvalue_max"])):
        gc.collect()
        most = max(most, len(alive))
    assert most <= 3  # the one being measured, the next, and the first
