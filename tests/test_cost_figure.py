"""The figure of costs: ratios to softmax attention of the same size, from rows or from their file."""

from pathlib import Path

import pytest
from benchmarks.cost_figure import draw, ratios, read_rows, write_cost
from benchmarks.network_cost import columns, networks
from benchmarks.network_flops import network_flops

RECORDED = Path(__file__).parents[1] / "docs" / "results" / "figures" / "cost.csv"


def row(size, attention, time, graph=None):
    return {"size": size, "attention": attention, "inference, ms": time, "training, ms": 2 * time,
            "graph: inference, ms": graph, "graph: training, ms": graph}  # fmt: skip


ROWS = [
    row("tiny", "softmax", 2.0, 1.0),
    row("tiny", "rpc", 3.0),
    row("base", "softmax", 10.0),
    row("base", "rpc", 30.0),
]


def test_a_network_is_compared_with_softmax_attention_of_its_size():
    found = ratios(ROWS, "inference, ms")
    assert found == {("softmax", "tiny"): 1, ("rpc", "tiny"): 1.5, ("softmax", "base"): 1, ("rpc", "base"): 3}


def test_what_was_not_measured_of_either_has_no_ratio():
    assert ratios(ROWS, "graph: inference, ms") == {("softmax", "tiny"): 1}
    assert ratios(ROWS, "inference, MiB") == {}


def test_rows_are_read_as_they_were_written_and_drawn_alike(tmp_path):
    write_cost(ROWS, tmp_path)
    assert read_rows(tmp_path / "cost.csv") == ROWS
    draw(read_rows(tmp_path / "cost.csv"), [tmp_path / "again.svg"])
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "cost.svg").read_bytes()
    drawn = (tmp_path / "cost.svg").read_text()
    assert "time of a CUDA graph" in drawn
    assert "memory" not in drawn


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_recorded_operations_are_those_of_the_formulas(size):
    recorded = {own["attention"]: own for own in read_rows(RECORDED) if own["size"] == size}
    for name, architecture in networks(size):
        flops = network_flops(architecture)
        found = [recorded[name][column] for column in columns(False)[:2]]
        assert found == pytest.approx([flops.inference / 1e9, flops.training / 1e9])
