"""Time and memory of a pass; CUDA graphs by a stand-in where there is no GPU."""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from benchmarks.network_cost import cell, measured, networks, table_head
from benchmarks.pass_cost import graph_seconds, peak_bytes, seconds

from attnaudit.sources.vision_transformer import build_vision_transformer

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


class Stream:
    def wait_stream(self, other):
        pass


class Graph:
    """A CUDA graph without a GPU: a replay is noted."""

    replays = 0

    def replay(self):
        Graph.replays += 1


@pytest.fixture
def graphs(monkeypatch):
    @contextmanager
    def recording(graph, stream):
        try:
            yield
        except RuntimeError:
            raise RuntimeError("the recording ended early") from None  # as torch does

    Graph.replays = 0
    for name, own in {"CUDAGraph": Graph, "graph": recording, "Stream": Stream, "current_stream": Stream}.items():
        monkeypatch.setattr(torch.cuda, name, own)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)


def test_time_is_of_all_repeats_after_two_that_warm_up():
    calls = []
    assert seconds(lambda: calls.append(0), CPU, 3) >= 0
    assert len(calls) == 5


def test_a_pass_runs_once_on_the_side_and_once_to_be_recorded_and_then_only_its_graph(graphs):
    calls = []
    assert isinstance(graph_seconds(lambda: calls.append(0), CUDA, 4), float)
    assert (len(calls), Graph.replays) == (2, 6)


def test_what_cannot_be_recorded_has_the_first_reason_and_no_time(graphs):
    calls = []

    def waits():
        calls.append(0)
        if len(calls) == 2:
            raise RuntimeError("operation not permitted\nwhen a stream is recording")

    assert graph_seconds(waits, CUDA, 4) == "operation not permitted"
    assert Graph.replays == 0


def test_a_cpu_has_no_graphs():
    assert graph_seconds(lambda: None, CPU, 4) == "a cpu has no CUDA graphs"


def test_peak_memory_is_what_is_held_at_a_time():
    def work():
        for _ in range(3):
            torch.zeros(1000, dtype=torch.float64)

    assert peak_bytes(work, CPU) == 8000


def test_a_network_is_measured_in_training_and_inference_and_left_without_gradients():
    architecture = dict(networks("tiny", image_size=32, depth=1, classes=3))["rpc, 2 iterations, all blocks"]
    model = build_vision_transformer(architecture, 0)
    times_and_bytes = measured(model, torch.randn(2, 3, 32, 32), "fp32", 1)
    assert len(times_and_bytes) == table_head(False).splitlines()[0].count("|") - 6
    assert times_and_bytes[3] > times_and_bytes[2] > 0
    assert all(own.grad is None for own in model.parameters())


def test_a_gpu_has_two_columns_of_time_more():
    plain, both = (table_head(cuda).splitlines()[0].split(" | ") for cuda in (False, True))
    assert set(both) - set(plain) == {"graph: inference, ms", "graph: training, ms"}


def test_a_cell_has_a_ratio_where_both_are_numbers():
    assert cell(3.0, 2.0) == "3.00 (×1.50)"
    assert cell(3.0, "no graph") == "3.00"
    assert cell("no graph", 2.0) == "–"
