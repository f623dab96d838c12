"""Time and memory of a pass; CUDA graphs by a stand-in where there is no GPU."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from attnaudit.cost.networks import networks
from attnaudit.cost.passes import passes, peak_bytes, recorded, seconds_in_turn
from attnaudit.sources.vision_transformer import build_vision_transformer

CPU = torch.device("cpu")


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


def test_passes_run_in_turn_and_two_of_each_warm_up():
    calls = []
    found = seconds_in_turn([lambda: calls.append("a"), lambda: calls.append("b")], CPU, 3)
    assert [len(own) for own in found] == [3, 3]
    assert "".join(calls) == "ab" * 5


@pytest.mark.parametrize(("device", "clock"), [("cpu", "process_time"), ("cuda", "perf_counter")])
def test_times_are_those_of_the_passes_alone_without_the_two_that_warm_up(monkeypatch, device, clock):
    """A stand-in clock, which goes on by what a pass has left to the device when one waits for it."""
    now = left = 0

    def wait():
        nonlocal now, left
        now, left = now + left, 0

    def work(*durations):
        following = iter(durations)

        def run():
            nonlocal left
            left += next(following)
            if device == "cpu":
                wait()

        return run

    monkeypatch.setattr("attnaudit.cost.passes.time", SimpleNamespace(**{clock: lambda: now}))
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    found = seconds_in_turn([work(90, 80, 3, 4, 5), work(70, 60, 6, 7, 8)], torch.device(device), 3)
    assert found == [(3, 4, 5), (6, 7, 8)]


def test_a_pass_runs_once_on_the_side_and_once_to_be_recorded_and_then_only_its_graph(graphs):
    calls = []
    replay = recorded(lambda: calls.append(0))
    seconds_in_turn([replay], CPU, 4)
    assert (len(calls), Graph.replays) == (2, 6)


def test_what_cannot_be_recorded_has_the_first_reason(graphs):
    calls = []

    def waits():
        calls.append(0)
        if len(calls) == 2:
            raise RuntimeError("operation not permitted\nwhen a stream is recording")

    assert recorded(waits) == "operation not permitted"
    assert Graph.replays == 0


def test_peak_memory_is_what_is_held_at_a_time():
    def work():
        for _ in range(3):
            torch.zeros(1000, dtype=torch.float64)

    assert peak_bytes(work, CPU) == 8000


def test_memory_that_the_last_pass_of_another_kind_left_is_not_counted_against_a_pass():
    architecture = dict(networks("tiny", image_size=64, depth=2, classes=3))["primal, rank 20"]
    inference, training = passes(build_vision_transformer(architecture, 0), torch.randn(8, 3, 64, 64), "fp32")
    alone = peak_bytes(inference, CPU)
    peak_bytes(training, CPU)  # leaves the objective with its graph, whose size the profiler knows
    assert peak_bytes(inference, CPU) == alone


def test_training_needs_more_memory_and_leaves_no_gradients():
    architecture = dict(networks("tiny", image_size=32, depth=1, classes=3))["rpc, 2 iterations, all blocks"]
    model = build_vision_transformer(architecture, 0)
    inference, training = (peak_bytes(work, CPU) for work in passes(model, torch.randn(2, 3, 32, 32), "fp32"))
    assert training > inference > 0
    assert all(own.grad is None for own in model.parameters())
