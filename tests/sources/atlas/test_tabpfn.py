"""TabPFN: labelled rows see one another and no others, tables are standardised, and an untrained one is noticed."""

import io

import numpy as np
import pytest
import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas import tabpfn
from attnaudit.sources.atlas.architectures.tabpfn import RowLayer, TabPFN
from tests.sources.atlas.archives import converted

SMALL = {"features": 100, "classes": 10, "width": 16, "layers": 2, "heads": 4, "inner": 32}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small untrained model, converted from a source archive like the real one."""
    monkeypatch.setattr(tabpfn, "_CONFIG", SMALL)
    torch.manual_seed(0)
    names = {"layers.": "transformer_encoder.layers."}
    state = {}
    for name, own in TabPFN(**SMALL).state_dict().items():
        begin = next((start for start in names if name.startswith(start)), "")
        state[f"module.{names.get(begin, '')}{name.removeprefix(begin)}"] = own
    file = io.BytesIO()
    torch.save((state | {"module.criterion.weight": torch.ones(10)}, None, {"lr": 0.1}), file)
    return converted(tabpfn.TABPFN, {tabpfn.TABPFN.files[0].name: file.getvalue()}, tmp_path)


def test_a_layer_is_attention_to_labelled_rows_and_a_network_with_norms_after_both():
    torch.manual_seed(0)
    layer, rows, labelled = RowLayer(8, 2, 16).eval(), torch.randn(1, 6, 8), 4
    weight, bias = layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias
    query, key, value = (rows[0] @ weight[8 * p : 8 * p + 8].T + bias[8 * p : 8 * p + 8] for p in range(3))
    mixed = torch.empty(6, 8)
    for head in (slice(0, 4), slice(4, 8)):
        scores = query[:, head] @ key[:labelled, head].T / 2
        mixed[:, head] = scores.softmax(-1) @ value[:labelled, head]
    first = layer.norm1(rows[0] + layer.self_attn.out_proj(mixed))
    inner = torch.nn.functional.gelu(layer.linear1(first))
    assert torch.allclose(layer(rows, labelled)[0], layer.norm2(first + layer.linear2(inner)), atol=1e-6)


def test_a_table_is_standardised_by_labelled_rows_and_scaled_for_its_columns():
    features = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 10.0]])
    found = tabpfn.table(features, np.array([0, 1, 1]), labelled=2)
    assert found["rows"].shape == (1, 3, 100)
    assert found["rows"][0, :, 0].tolist() == pytest.approx([-50.0, 50.0, 150.0], rel=1e-5)
    assert not found["rows"][0, :, 1:].any(), "a constant column, and columns that are not there"
    assert found["labels"].tolist() == [[0.0, 1.0]]


def test_an_untrained_model_from_a_source_archive_runs_and_is_noticed(folder):
    pytest.importorskip("sklearn")
    network = tabpfn.build(folder, None)
    logits = network(torch.zeros(1, 5, 100), torch.zeros(1, 3))
    assert logits.shape == (1, 2, 10)
    with pytest.raises(WeightsError, match=r"It labels .* of the rows of iris"):
        tabpfn.check(folder)


def test_tables_are_independent_and_long_enough_for_a_verdict(folder):
    pytest.importorskip("sklearn")
    tables = tabpfn.samples(folder)
    assert len(tables) == len({own.name for own in tables}) == 16
    for own in tables:
        assert own.inputs["labels"].shape[1] == own.inputs["rows"].shape[1] >= 256
        assert own.inputs["labels"].max() < 10
        assert own.inputs["rows"].isfinite().all()
