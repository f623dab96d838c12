"""A training from start to finish: steps, evaluation, monitor, checkpoints. Repeated, it resumes where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from attnaudit.errors import NumericalError
from attnaudit.numerics.randomness import preserved_random_state, seed_everything
from attnaudit.records.recipe import Recipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.training.batching import Batch, Layout
from attnaudit.training.distributed import DeviceSettings, on_all_ranks
from attnaudit.training.monitor import Monitor
from attnaudit.training.optimiser import check_optimiser
from attnaudit.training.tasks import Feed, Task, TrainTestData, make_task
from attnaudit.training.trainer import Checkpoint, Trainer, load_checkpoint, save_checkpoint
from attnaudit.training.training_folder import (
    TrainingResult,
    attention_statistics,
    check_measurements,
    comparison_key,
    open_training_folder,
    write_history,
    write_result,
)

#: Test inputs for the statistics of attention layers at the end, unless a batch has fewer.
_STATISTICS_INPUTS = 64
#: The batch of the first epoch that is monitored: the third, as in the study.
_MONITORED_BATCH = 2
#: Called after every step with the number of steps done, of all steps, and a few words.
Progress = Callable[[int, int, str], None]
Tell = Callable[[str], None]


@dataclass
class _TrainingState:
    """What changes from step to step besides the model.

    `loss` is the sum over the steps of the current epoch, of means over all ranks: the same on every rank, so that one
    of them can save it for all, and with any number of ranks.
    """

    step: int = 0
    loss: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    recipe: Recipe,
    data: TrainTestData,
    out: Path,
    *,
    seed: int = 0,
    device_settings: DeviceSettings | None = None,
    progress: Progress = lambda done, total, words: None,
    tell: Tell = lambda line: None,
) -> TrainingResult:
    """Train, or continue to train, by a recipe, in a run folder.

    Args:
        recipe: the settings; the number of classes, or of words, is taken from the data.
        data: the training and test half: images or text, as the recipe requires (`read_data`).
        out: the run folder: `run.json`, `checkpoint.pt`, `history.json`, `evidence/` of the monitor, and at the end
            `model.safetensors`, `average.safetensors`, `card.json` and `summary.json`.
        seed: of weights, order, augmentation and all other random choices.
        device_settings: device, worker processes, compilation, ranks.
        progress: called after every step.
        tell: called with a line for the start, every epoch and every measurement of the monitor.

    Raises:
        InputError: the data cannot be learned from.
        UsageError: a setting of the recipe is not available, such as an optimiser.
        RunFolderError: the folder holds another training, or its checkpoint is damaged.
        NumericalError: the loss is no longer finite.
    """
    settings = device_settings or DeviceSettings()
    check_optimiser(recipe.optimiser.name, settings.device)
    task = make_task(recipe, data)
    layout = Layout(task.examples, recipe.batch, seed, settings.ranks, recipe.examples)
    with open_training_folder(out, task, layout) as folder, preserved_random_state():
        tell(f"Training {recipe.name}, seed {seed}, on {task.data_summary}, on {settings.device}, in {out}.")
        if recipe.epochs <= (warmup := recipe.optimiser.warmup_epochs):
            tell(
                f"The rate does not reach {recipe.optimiser.rate:g}: its warm-up takes {warmup:g} epochs, "
                f"and the whole training {recipe.epochs}. --set optimiser.warmup_epochs=0 begins with it."
            )
        return _Training(task, folder, settings, layout, tell).run(progress)


class _Training:
    def __init__(self, task: Task, folder: RunFolder, settings: DeviceSettings, layout: Layout, tell: Tell) -> None:
        self.task, self.recipe, self.folder, self.settings = task, task.recipe, folder, settings
        self.layout, self.tell = layout, tell
        saved = load_checkpoint(folder.path, settings.device)
        if saved is not None:
            step = saved["step"]
            on_all_ranks(lambda: check_measurements(folder, step) if settings.ranks.is_main else None)
        seed_everything(layout.seed, "before")
        self.trainer = Trainer(task.build(layout.seed), self.recipe, layout.steps, settings)
        self.state = _TrainingState()
        if saved is not None:
            self.trainer.restore(saved)
            self.state = _TrainingState(saved["step"], saved["loss"], saved["history"])
        self.feed = task.feed(layout, settings.device, settings.workers)
        self.monitor = recipe_monitor(self.trainer.model, self.recipe, folder, self.feed, layout, tell)
        self._saved_at = time.monotonic()

    def run(self, progress: Progress) -> TrainingResult:
        """All remaining epochs."""
        steps, total = self.layout.steps, self.recipe.epochs * self.layout.steps
        if self.state.step == 0:
            self._measure()
        for epoch in range(self.state.step // steps, self.recipe.epochs):
            start = self.state.step % steps
            loss = torch.zeros((), device=self.settings.device)
            begin = time.monotonic()
            for batch in self.feed.training(epoch, start):
                loss += self._step(batch)
                progress(self.state.step, total, self._words(epoch))
                if self._save_is_due and self.state.step % steps:
                    self.state.loss, loss = self.state.loss + self._finite(loss), torch.zeros_like(loss)
                    self._save()
            self.state.loss += self._finite(loss)
            rate = (steps - start) * self.recipe.batch / (time.monotonic() - begin)
            self._finish_epoch(epoch, rate)
            if self._save_is_due:  # not before: a training resumed from the end of an epoch would lack its record
                self._save()
        self._save()
        return self._finish()

    def _step(self, batch: Batch) -> torch.Tensor:
        seed_everything(self.layout.seed, "step", self.state.step, self.settings.ranks.rank)
        loss = self.trainer.step(self.state.step, *self.feed.prepare(batch))
        self.state.step += 1
        return self.settings.ranks.mean(loss)

    def _finite(self, summed: torch.Tensor) -> float:
        """The sum of losses as a number, which waits for the device, so it is not done in every step."""
        loss = float(summed)
        self._check_finite(loss, "loss", "before")
        return loss

    def _check_finite(self, number: float, name: str, when: str) -> None:
        if not math.isfinite(number):
            raise NumericalError(
                f"The {name} is {number} {when} step {self.state.step} of {self.recipe.name}: use a lower rate with "
                "--set optimiser.rate=…, or clip gradients with --set optimiser.clip=1."
            )

    def _finish_epoch(self, epoch: int, rate: float) -> None:
        record = {
            "epoch": epoch + 1,
            "step": self.state.step,
            "rate": self.trainer.rate,
            "train_loss": self.state.loss / self.layout.steps,
            **self.feed.evaluate(self.trainer.model),
            f"{self.recipe.examples}_per_second": rate,
        }
        if self.trainer.average is not None:
            averaged = self.feed.evaluate(self.trainer.average)
            record |= {f"average_{name}": value for name, value in averaged.items()}
        for name in ("test_loss", "average_test_loss"):
            self._check_finite(record.get(name, 0.0), name.replace("_", " "), "after")
        self.state.history.append(record)
        if self.settings.ranks.is_main:
            write_history(self.folder.path, self.recipe, self.state.history)
        self.state.loss = 0.0
        self.tell(
            f"epoch {epoch + 1}/{self.recipe.epochs}: loss {record['train_loss']:.3f}, {self.task.describe(record)}, "
            f"{rate:,.0f} {self.recipe.examples}/s"
        )
        if (epoch + 1) % self.recipe.monitor.every == 0 or epoch + 1 == self.recipe.epochs:
            self._measure()

    def _measure(self) -> None:
        if self.monitor is not None:
            self.monitor.measure(self.state.step)
            if self.monitor.latest is not None:
                self.tell(self.monitor.latest.line)

    def _words(self, epoch: int) -> str:
        last = f", {self.task.describe(self.state.history[-1])}" if self.state.history else ""
        return f"epoch {epoch + 1}/{self.recipe.epochs}{last}"

    @property
    def _save_is_due(self) -> bool:
        return time.monotonic() - self._saved_at >= self.settings.save_after

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self.settings.ranks.is_main:
            checkpoint: Checkpoint = {
                **self.trainer.state(),
                "step": self.state.step,
                "loss": self.state.loss,
                "history": self.state.history,
            }
            save_checkpoint(self.folder.path, checkpoint)

    def _finish(self) -> TrainingResult:
        history = tuple(self.state.history)
        details = {**self.task.facts, "setting": comparison_key(self.recipe, self.task.fingerprints)}
        seed_everything(self.layout.seed, "after")
        inputs = self.feed.monitor_inputs(0, min(_STATISTICS_INPUTS, self.recipe.batch))["test"]
        if found := attention_statistics(self.trainer.model, inputs):
            details["attention"] = found
        sentence = self.task.describe(history[-1])
        result = TrainingResult(self.folder.path, self.recipe, self.layout.seed, history, details, sentence)
        if self.settings.ranks.is_main:
            write_history(self.folder.path, self.recipe, history)
            write_result(result, self.folder, self.task, self.trainer)
        return result


def recipe_monitor(
    model: nn.Module, recipe: Recipe, folder: RunFolder, feed: Feed, layout: Layout, tell: Tell
) -> Monitor | None:
    """The monitor of a recipe, on one batch of training inputs and one of test inputs; None if it is turned off."""
    if recipe.monitored_inputs < 1:
        return None
    own = max(1, recipe.monitored_inputs // layout.ranks.count)
    seed_everything(layout.seed, "monitor", layout.ranks.rank)
    batches = feed.monitor_inputs(min(_MONITORED_BATCH, layout.steps - 1), own)
    for half, inputs in batches.items():
        if len(inputs) < own:
            found, wanted = (count * layout.ranks.count for count in (len(inputs), own))
            tell(f"The monitor uses {found} {half} {recipe.examples} instead of {wanted}: a batch has no more.")
    return Monitor(
        model,
        dict(batches),
        out=folder,
        name=recipe.name,
        scores=recipe.monitor.scores,
        legacy=recipe.monitor.legacy,
        tell=lambda line: None,  # the loop tells it
        seed=layout.seed,
        mode={"train": "train" if recipe.monitor.train_mode else "eval"},
    )
