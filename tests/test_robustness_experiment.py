"""The robustness experiment: its recipes, and trainings that wait for each other, fail, and go on."""

import argparse

import pytest
import torch
from benchmarks import robustness_experiment as experiment
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.errors import UsageError
from attnaudit.sources.architecture import build
from attnaudit.training.recipe import read_recipe

pytest.importorskip("timm")


def recipe(name):
    return read_recipe(str(experiment.FOLDER / f"robust-{name}.yaml"))


def test_every_recipe_is_in_the_experiment():
    assert sorted(path.stem for path in experiment.FOLDER.glob("robust-*.yaml")) == sorted(
        f"robust-{name}" for name in experiment.RECIPES
    )


@pytest.mark.parametrize("name", experiment.RECIPES)
def test_recipes_differ_in_their_model_alone_and_can_be_built(name):
    own, reference = recipe(name).identity, recipe("softmax").identity
    changed = {setting for setting in own if own[setting] != reference[setting]}
    assert changed <= {"name", "about", "model"}
    assert build(recipe(name).model, 0)(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def operations(name):
    """Multiplications of a picture, in attention too, which only torch's plain implementation counts on a CPU."""
    model = build(recipe(name).model, 0)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    return counter.get_total_flops() / 2


def test_networks_of_the_same_compute_have_as_many_operations():
    """A layer of width C on N = 65 tokens: N·12C² + 2N²C with queries, N·11C² + 2N²C without; an iteration 2N²C."""
    pursuing = operations("rpc4")
    layers = 65 * 11 * 192**2 + 2 * 65**2 * 192
    assert pursuing - operations("symmetric") == 3 * 2 * 65**2 * 192
    assert pursuing == pytest.approx(6 * layers + 3 * 2 * 65**2 * 192, rel=0.005)  # beside patches and classes
    for name in ("softmax-compute", "symmetric-compute"):
        assert operations(name) == pytest.approx(pursuing, rel=0.01)
    assert operations("softmax") > 1.05 * pursuing


class Process:
    """A training that is over at the second look, and leaves a summary unless it is to fail."""

    def __init__(self, folder, fails):
        self.folder, self.fails, self.looks, self.stopped = folder, fails, 0, False

    def poll(self):
        self.looks += 1
        if self.looks < 2:
            return None
        if not self.fails:
            self.folder.mkdir(exist_ok=True)
            (self.folder / experiment.SUMMARY).touch()
        return int(self.fails)

    def terminate(self):
        self.stopped = True

    def wait(self):
        return 0


@pytest.fixture
def started(monkeypatch):
    """The commands of trainings that were started, by folder."""
    found = {}

    def start(words, log):
        folder = log.with_suffix("")
        found[folder.name] = words, Process(folder, fails=folder.name in found.get("failing", ()))
        return found[folder.name][1]

    monkeypatch.setattr(experiment, "start", start)
    monkeypatch.setattr(experiment.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(experiment, "temperature", lambda folder, data: 0.25)
    return found


def arguments(tmp_path, jobs=2):
    return argparse.Namespace(data=tmp_path, device="cpu", train="--epochs 1", jobs=jobs)


def trainings(tmp_path, *recipes, seeds=(0,)):
    return [experiment.Training(name, seed, tmp_path) for name in recipes for seed in seeds]


def test_a_temperature_is_that_of_the_finished_network_of_its_seed(tmp_path, started):
    wanted = trainings(tmp_path, "symmetric-temperature", "rpc4", seeds=(0, 1))
    assert experiment.train(wanted, arguments(tmp_path), float("inf"))
    names = list(started)
    assert names.index("robust-rpc4-1") < names.index("robust-symmetric-temperature-1")
    words, _ = started["robust-symmetric-temperature-1"]
    assert words[words.index("--set") + 1] == "model.attention_options.temperature=0.25"
    assert words[-2:] == ["--epochs", "1"]


def test_finished_trainings_are_not_started_again(tmp_path, started):
    wanted = trainings(tmp_path, "rpc4", "symmetric")
    experiment.train(wanted[:1], arguments(tmp_path), float("inf"))
    started.clear()
    assert experiment.train(wanted, arguments(tmp_path), float("inf"))
    assert list(started) == ["robust-symmetric-0"]


def test_a_failure_is_said_and_what_needs_it_is_left(tmp_path, started, capsys):
    started["failing"] = ("robust-rpc4-0",)
    wanted = trainings(tmp_path, "rpc4", "symmetric-temperature", "softmax")
    assert not experiment.train(wanted, arguments(tmp_path), float("inf"))
    said = capsys.readouterr().out
    assert "robust-rpc4-0: FAILED" in said
    assert "2 of 3 trainings are left: robust-rpc4-0, robust-symmetric-temperature-0" in said


def test_a_network_without_a_temperature_is_said(tmp_path, started, monkeypatch, capsys):
    def none(folder, data):
        raise UsageError("at no temperature.")

    monkeypatch.setattr(experiment, "temperature", none)
    wanted = trainings(tmp_path, "rpc4", "symmetric-temperature")
    assert not experiment.train(wanted, arguments(tmp_path), float("inf"))
    assert "robust-symmetric-temperature-0: not trained: at no temperature." in capsys.readouterr().out


def test_when_the_time_is_over_everything_is_stopped(tmp_path, started, monkeypatch, capsys):
    clock = iter(range(100))
    monkeypatch.setattr(experiment.time, "monotonic", lambda: next(clock))
    assert not experiment.train(trainings(tmp_path, "rpc4"), arguments(tmp_path), deadline=1)
    _, process = started["robust-rpc4-0"]
    assert process.stopped
    assert "1 of 1 trainings are left" in capsys.readouterr().out
