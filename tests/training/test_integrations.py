"""The monitor in other people's tools: optimisers, Lightning, transformers, Accelerate."""

import sys
from types import ModuleType

import pyarrow.compute as pc
import pytest
import torch
from torch import nn

from attnaudit.errors import MissingExtraError, UsageError
from attnaudit.records.run_folder import RunFolder
from attnaudit.training import Monitor
from tests.training.networks import WIDTH, batch, network
from tests.training.rows import quiet


def steps(monitor):
    return [reading.step for reading in monitor.history]


class Answering(nn.Module):
    """As transformers' models: keyword arguments in, a loss first."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, inputs, labels=None):
        answer = self.net(inputs)
        return (nn.functional.cross_entropy(answer, labels), answer) if labels is not None else (answer,)


def examples(count):
    return [{"inputs": batch(1, seed=place)[0], "labels": place % 3} for place in range(count)]


@pytest.fixture
def accelerate():
    """The package, without what an earlier test has settled for the whole process, and without what this one does."""
    package = pytest.importorskip("accelerate")
    for state in (package.state.AcceleratorState, package.state.GradientState):
        state._reset_state()
    yield package
    for state in (package.state.AcceleratorState, package.state.GradientState):
        state._reset_state()


@pytest.mark.parametrize(("every", "expected"), [(2, [0, 2, 4, 6]), ("epoch", [0, 3, 6])])
def test_a_transformers_trainer_measures_by_optimiser_steps_or_epochs(accelerate, tmp_path, every, expected):
    """Twelve examples, two at a time, two batches to a step: three steps an epoch."""
    transformers = pytest.importorskip("transformers")
    weights = []
    for monitored in (False, True):
        model = Answering()
        monitor = Monitor(model, {"test": {"inputs": batch()}}, every=every, tell=quiet)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), num_train_epochs=2, per_device_train_batch_size=2, gradient_accumulation_steps=2,
            report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True, seed=0, logging_strategy="no",
        )  # fmt: skip
        trainer = transformers.Trainer(
            model, arguments, train_dataset=examples(12), callbacks=[monitor.for_trainer()] if monitored else []
        )
        trainer.train()
        weights.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    assert steps(monitor) == expected
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=0)


def test_accelerate_counts_steps_and_is_measured_without_its_autocast(accelerate):
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
    plain = Monitor(network(), batch(), tell=quiet).measure(0)
    model = network()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    monitor = Monitor(model, batch(), every=2, tell=quiet).attach(optimizer)
    rows = monitor.evidence
    assert rows.filter(pc.equal(rows["step"], 0))["value"].equals(plain["value"])
    assert "forward" in model.__dict__, "Accelerate's forward is back in place"
    for _ in range(8):
        with accelerator.accumulate(model):
            accelerator.backward(model(batch()).sum())
            optimizer.step()
            optimizer.zero_grad()
    assert steps(monitor) == [0, 2, 4]


class FakeTrainer:
    """The hooks of `lightning.pytorch.Trainer`, in its order and with its arguments; a step takes two batches."""

    def __init__(self, callback, module, start=0):
        self.callback, self.module, self.global_step = callback, module, start

    def fit(self, epochs, batches):
        self.callback.on_train_start(self, self.module)
        for _ in range(epochs):
            for place in range(batches):
                self.global_step += place % 2
                self.callback.on_train_batch_end(self, self.module, None, None, place)
            self.callback.on_train_epoch_end(self, self.module)
        self.callback.on_train_end(self, self.module)


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def lightning(request, monkeypatch):
    """Lightning's package, under its new or its old name, with nothing in it but a base class."""
    module = ModuleType(request.param)
    module.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, request.param, module)
    return module


@pytest.mark.parametrize(
    ("every", "start", "expected"),
    [(2, 0, [0, 2, 4, 6]), ("epoch", 0, [0, 3, 6]), (2, 4, [4, 6, 8, 10]), (3, 4, [6, 9])],
)
def test_a_lightning_callback_measures_each_step_once(lightning, every, start, expected):
    model = network()
    monitor = Monitor(model, batch(), every=every, scores=0, tell=quiet)
    callback = monitor.lightning()
    assert isinstance(callback, lightning.Callback)
    FakeTrainer(callback, model, start).fit(epochs=2, batches=6)
    assert steps(monitor) == expected


def test_the_end_of_a_training_frees_the_folder_of_a_callback(lightning, tmp_path):
    for name, arguments in (("lightning", (None, None)), ("for_trainer", (None, None, None))):
        monitor = Monitor(network(), batch(), out=tmp_path / name, scores=0, tell=quiet)
        monitor.measure(0)
        assert RunFolder(tmp_path / name).writer is not None
        getattr(monitor, name)().on_train_end(*arguments)
        assert RunFolder(tmp_path / name).writer is None


def test_trainers_that_are_not_installed_are_named(monkeypatch):
    monitor = Monitor(network(), batch())
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"A Lightning callback needs lightning.*attnaudit\[lightning\]"):
        monitor.lightning()
    with pytest.raises(MissingExtraError, match=r"needs transformers.*attnaudit\[hf\]"):
        monitor.for_trainer()


def test_steps_are_those_of_the_optimiser_not_micro_batches():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, batch(), every=2, scores=0, tell=quiet).attach(optimizer)
    for micro in range(12):
        model(batch()).sum().backward()
        if micro % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    assert [reading.step for reading in monitor.history] == [0, 2, 4]


@pytest.mark.parametrize("fused", [False, True])
def test_steps_that_a_scaler_skips_do_not_count(fused):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    taken, due = 0, []
    monitor = Monitor(model, batch(), every=3, scores=0, tell=quiet).attach(optimizer)
    for round in range(12):
        optimizer.zero_grad()
        scaler.scale(model(batch()).sum()).backward()
        if round in (1, 2, 5):
            model.head.bias.grad.fill_(torch.inf)
        else:
            taken += 1
            due += [round] if taken % 3 == 0 else []
        before = len(monitor.history)
        scaler.step(optimizer)
        assert (len(monitor.history) > before) == (round in due)
        scaler.update()
    assert [reading.step for reading in monitor.history] == [0, 3, 6, 9]


def test_what_cannot_be_attached_to_is_refused():
    with pytest.raises(UsageError, match="needs a torch optimiser, got Linear"):
        Monitor(network(), batch()).attach(nn.Linear(WIDTH, 1))
    with pytest.raises(UsageError, match='got every="epoch"'):
        Monitor(network(), batch(), every="epoch").attach(torch.optim.SGD(network().parameters()))
