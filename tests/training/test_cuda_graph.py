"""Steps that are recorded and replayed: the training that they would be without."""

import copy
from contextlib import contextmanager, nullcontext

import pytest
import torch
from safetensors.torch import load_file

from attnaudit.errors import AttnAuditError, ShapeError, UsageError
from attnaudit.numerics.randomness import seed_everything
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training import cuda_graph, trainer
from attnaudit.training.cuda_graph import RecordedStep, check_recordable
from attnaudit.training.distributed import DeviceSettings, Ranks
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.trainer import Trainer

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CHANGES = ("model.depth=2", "batch=16", "precision=fp32", "average=0.9", "optimiser.warmup_epochs=0")


def weights_after(steps, recorded, *, resumed_at=None, changes=()):
    recipe = read_recipe("vit-small-cifar", [*CHANGES, *changes])

    def new_trainer():
        settings = DeviceSettings("cuda", graph=recorded)
        return Trainer(build_vision_transformer(recipe.model, 0), recipe, 10, settings)

    own = new_trainer()
    for step in range(steps):
        if step == resumed_at:
            state, own = own.state(), new_trainer()
            own.restore(state)
        seed_everything("test", step)
        images = torch.randn(16, 3, 32, 32, device="cuda")
        targets = torch.randn(16, 10, device="cuda").softmax(dim=1)
        loss = own.step(step, images, targets)
    assert torch.isfinite(loss)
    return own


@needs_gpu
@pytest.mark.parametrize("changes", [(), ("model.attention=rpc",), ("model.attention=scaled",)])
def test_recorded_steps_train_the_model_that_plain_ones_train(changes):
    plain, recorded = (weights_after(12, recorded, changes=changes) for recorded in (False, True))
    for ours, theirs in ((recorded.model, plain.model), (recorded.average, plain.average)):
        for own, wanted in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(own, wanted, rtol=1e-3, atol=2e-4)  # twelve steps of rate 1e-3
    assert recorded.rate == plain.rate


@needs_gpu
def test_replayed_steps_follow_the_schedule_and_draw_new_random_numbers():
    torch.manual_seed(0)
    weight = torch.zeros(3, device="cuda", requires_grad=True)
    optimiser = torch.optim.AdamW([weight], lr=1.0, weight_decay=0.0, fused=True)
    seen = []

    def work(inputs, targets):
        optimiser.zero_grad(set_to_none=True)
        loss = (weight * inputs).sum() + torch.rand((), device="cuda")
        loss.backward()
        optimiser.step()
        return loss.detach()

    step = RecordedStep(work, optimiser)
    for number in range(8):
        before = weight.detach().clone()
        optimiser.param_groups[0]["lr"] = 1.0 / (number + 1)
        loss = float(step(torch.ones(3, device="cuda"), torch.zeros(3, device="cuda")))
        seen.append(loss - float(before.sum()))
        torch.testing.assert_close(before - weight.detach(), torch.full((3,), 1.0 / (number + 1), device="cuda"))
    assert len({round(draw, 5) for draw in seen}) == 8


@needs_gpu
def test_a_recorded_training_that_is_resumed_is_the_same_training():
    whole, broken = weights_after(12, True), weights_after(12, True, resumed_at=7)
    for own, wanted in zip(broken.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-3, atol=2e-4)


@needs_gpu
def test_what_waits_for_the_host_cannot_be_recorded():
    weight = torch.zeros(3, device="cuda", requires_grad=True)
    step = RecordedStep(lambda inputs, targets: inputs.sum() * float(inputs.sum()), torch.optim.AdamW([weight]))
    batch = torch.ones(3, device="cuda")
    for _ in range(3):
        step(batch, batch)
    torch.manual_seed(0)
    with pytest.raises(AttnAuditError, match=r"cannot be recorded .* without --graph"):
        step(batch, batch)
    drawn = torch.rand(3, device="cuda")
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(3, device="cuda"))


def test_steps_on_a_cpu_are_not_recorded():
    recipe = read_recipe("vit-small-cifar", CHANGES)
    with pytest.raises(UsageError, match="--graph needs one process on a GPU, got 1 process on cpu"):
        Trainer(build_vision_transformer(recipe.model, 0), recipe, 10, DeviceSettings(graph=True))


@pytest.mark.parametrize(("device", "ranks"), [("cpu", Ranks()), ("cuda:1", Ranks(1, 2))])
def test_only_one_process_on_a_gpu_is_recorded(device, ranks):
    with pytest.raises(UsageError, match=f"--graph needs one process on a GPU, got {ranks.count} .* on {device}"):
        check_recordable(read_recipe("vit-small-cifar"), DeviceSettings(device, ranks=ranks))


@pytest.mark.parametrize("name", ["adam", "nadam", "rmsprop", "laprop", "lookahead_adamw", "sgd"])
def test_no_other_optimiser_than_adamw_is_recorded(name):
    recipe = read_recipe("vit-small-cifar", [f"optimiser.name={name}"])
    with pytest.raises(UsageError, match=f"--graph needs the optimiser adamw, got {name}:"):
        check_recordable(recipe, DeviceSettings("cuda"))


@pytest.mark.parametrize("name", ["adamw", "AdamW"])
def test_adamw_is_recorded_however_it_is_spelled(name):
    check_recordable(read_recipe("vit-small-cifar", [f"optimiser.name={name}"]), DeviceSettings("cuda:0"))


class Graph:
    """A CUDA graph without a GPU: what is `launched` while it is recorded is done by a replay, and only then."""

    recording = None

    def __init__(self):
        self.launches = []

    def replay(self):
        for launch in self.launches:
            launch()

    @classmethod
    def launched(cls, launch):
        if cls.recording is None:
            launch()
        else:
            cls.recording.launches.append(launch)


class Stream:
    def wait_stream(self, other):
        pass


@pytest.fixture
def graphs(monkeypatch):
    @contextmanager
    def recording(graph, stream):
        monkeypatch.setattr(Graph, "recording", graph)
        yield
        monkeypatch.setattr(Graph, "recording", None)

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", recording)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)


@pytest.fixture
def descent(graphs):
    """A step weight ← weight - rate · inputs · targets, and its weight and optimiser."""
    weight, loss = torch.zeros(2), torch.zeros(())
    optimiser = torch.optim.SGD([weight], lr=0.5)

    def work(inputs, targets):
        rate = optimiser.param_groups[0]["lr"]

        def launch():
            loss.copy_((weight * inputs).sum())
            weight.sub_(rate * inputs * targets)

        Graph.launched(launch)
        return loss

    return RecordedStep(work, optimiser), weight, optimiser


def test_every_step_has_its_own_rate_inputs_targets_and_loss(descent):
    step, weight, optimiser = descent
    expected = torch.zeros(2)
    for number in range(1, 3 + cuda_graph._WARM_UP):
        optimiser.param_groups[0]["lr"] = rate = 1.0 / number
        inputs, targets = torch.tensor([1.0, -number]), torch.tensor([number**2, 2.0])
        loss = step(inputs, targets)
        assert float(loss) == pytest.approx(float((expected * inputs).sum()))
        expected = expected - rate * inputs * targets
        torch.testing.assert_close(weight, expected)
        assert optimiser.param_groups[0]["lr"] == rate


def test_recording_leaves_the_groups_of_an_optimiser_as_they_were(descent):
    step, _, optimiser = descent
    before = dict(optimiser.param_groups[0])
    assert "capturable" not in before
    for _ in range(2 + cuda_graph._WARM_UP):
        step(torch.ones(2), torch.ones(2))
    assert optimiser.param_groups[0] == before


@pytest.mark.parametrize(
    ("inputs", "targets", "words"),
    [
        (torch.ones(1), torch.ones(2), r"inputs of 2, torch.float32, got 1, torch.float32"),
        (torch.ones(2), torch.ones(()), r"targets of 2, torch.float32, got one number, torch.float32"),
        (torch.ones(2), torch.ones(2).long(), r"targets of 2, torch.float32, got 2, torch.int64"),
    ],
)
def test_a_batch_of_another_shape_or_type_is_not_squeezed_into_the_recording(descent, inputs, targets, words):
    step, weight, _ = descent
    for _ in range(1 + cuda_graph._WARM_UP):
        step(torch.ones(2), torch.ones(2))
    before = weight.clone()
    with pytest.raises(ShapeError, match=rf"was recorded for {words}: .* without --graph"):
        step(inputs, targets)
    assert torch.equal(weight, before)


class Frozen:
    """A recorded step that insists, as a graph would have to, on the tensors that it found."""

    def __init__(self, work, optimiser):
        self.work, self.optimiser, self.found = work, optimiser, None

    def __call__(self, inputs, targets):
        loss = self.work(inputs, targets)
        memory = [tensor for state in self.optimiser.state.values() for tensor in state.values()]
        self.found = self.found or memory
        assert all(old is new for old, new in zip(self.found, memory, strict=True))
        return loss


def test_a_restored_trainer_records_its_step_anew(monkeypatch):
    monkeypatch.setattr(trainer, "RecordedStep", Frozen)
    monkeypatch.setattr(trainer, "check_recordable", lambda recipe, settings: None)
    recipe = read_recipe("vit-small-cifar", [*CHANGES, "model.depth=1", "model.width=24", "model.heads=2"])
    own = Trainer(build_vision_transformer(recipe.model, 0), recipe, 10, DeviceSettings(graph=True))
    batch = torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
    own.step(0, *batch)
    own.step(1, *batch)
    own.restore(copy.deepcopy(own.state()))
    own.step(2, *batch)


@needs_gpu
@pytest.mark.parametrize("change", ["monitor.images=0", "monitor.images=4"])
def test_a_whole_training_is_the_same_recorded_monitored_or_neither(recipe_file, halves, tmp_path, change):
    """With drop path, augmentation, averaging and evaluations between the steps."""
    plain = train(read_recipe(str(recipe_file)), halves, tmp_path / "plain", device_settings=DeviceSettings("cuda"))
    recipe = read_recipe(str(recipe_file), [change])
    recorded = train(recipe, halves, tmp_path / "recorded", device_settings=DeviceSettings("cuda", graph=True))
    for file in ("model.safetensors", "average.safetensors"):
        own, wanted = (load_file(run.path / file) for run in (recorded, plain))
        for name, tensor in own.items():
            torch.testing.assert_close(tensor, wanted[name], rtol=1e-3, atol=1e-3, msg=lambda m, n=name: f"{n}: {m}")
