"""A training from start to finish: steps, evaluation, monitor, checkpoints; repeated, it goes on where it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from attnaudit.errors import NumericalError
from attnaudit.numerics.randomness import preserved_random_state, seed_everything
from attnaudit.records.recipe import Recipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.training import checkpoint
from attnaudit.training.attending import attended
from attnaudit.training.batches import Batch, Layout
from attnaudit.training.opening import opened
from attnaudit.training.optimisers import check_optimiser
from attnaudit.training.outcome import Trained, setting, write_history, write_outcome
from attnaudit.training.place import Place
from attnaudit.training.task import Halves, Task, task_of
from attnaudit.training.trainee import Trainee
from attnaudit.training.watching import monitor_of

#: Test inputs on which it is measured at the end what layers attend with, if as many fit into a batch.
_ATTENDED = 64
#: Told of every step: (steps done, steps in all, a few words).
Progress = Callable[[int, int, str], None]


@dataclass
class _Going:
    """What changes from step to step beside the model."""

    step: int = 0
    loss: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    recipe: Recipe,
    data: Halves,
    out: Path,
    *,
    seed: int = 0,
    place: Place | None = None,
    progress: Progress = lambda done, total, words: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train, or go on training, what a recipe says, in a run folder.

    Args:
        recipe: the settings; the number of classes, or of words, is taken from the data.
        data: training and test half: images, or text, as the recipe's kind wants (`read_halves`).
        out: the run folder: `run.json`, `checkpoint.pt`, `evidence/` of the monitor, and at the end `history.json`,
            `model.safetensors`, `average.safetensors`, `card.json` and `summary.json`.
        seed: of weights, order, augmentation and everything else that is random.
        place: device, worker processes, compilation, ranks.
        progress: told of every step.
        tell: given a line for the start, every epoch and every look of the monitor.

    Raises:
        InputError: the data cannot be learned from.
        UsageError: the recipe asks for what there is not, such as an optimiser.
        RunFolderError: the folder holds another training, or its checkpoint is damaged.
        NumericalError: the loss is no longer finite.
    """
    place = place or Place()
    check_optimiser(recipe.optimiser.name)
    task = task_of(recipe, data)
    layout = Layout(task.examples, recipe.batch, seed, place.ranks, recipe.examples)
    with opened(out, task, layout) as folder, preserved_random_state():
        tell(f"Training {recipe.name}, seed {seed}, on {task.about}, on {place.device}, in {out}.")
        return _Training(task, folder, place, layout, tell).run(progress, tell)


class _Training:
    def __init__(
        self, task: Task, folder: RunFolder, place: Place, layout: Layout, tell: Callable[[str], None]
    ) -> None:
        self.task, self.recipe, self.folder, self.place, self.layout = task, task.recipe, folder, place, layout
        saved = checkpoint.load(folder.path, place.device)
        seed_everything(layout.seed, "before")
        model = task.build(layout.seed)
        how = {"compiled": place.compiled, "recorded": place.recorded}
        self.trainee = Trainee(model, self.recipe, layout.steps, place.device, place.ranks, **how)
        self.going = _Going()
        if saved is not None:
            self.trainee.restore(saved)
            self.going = _Going(saved["step"], saved["loss"], saved["history"])
        self.feed = task.feed(layout, place.device, place.workers)
        self.monitor = monitor_of(self.trainee.model, self.recipe, folder, self.feed, layout, tell)
        self._saved_at = time.monotonic()

    @property
    def total(self) -> int:
        """Steps in all."""
        return self.recipe.epochs * self.layout.steps

    def run(self, progress: Progress, tell: Callable[[str], None]) -> Trained:
        """All epochs that are left."""
        if self.going.step == 0:
            self.look(0, tell)
        for epoch in range(self.going.step // self.layout.steps, self.recipe.epochs):
            start = self.going.step % self.layout.steps
            summed = torch.zeros((), device=self.place.device)
            begin = time.monotonic()
            for batch in self.feed.training(epoch, start):
                summed += self._step(batch)
                progress(self.going.step, self.total, self._words(epoch))
                if self._save_is_due and self.going.step % self.layout.steps:
                    self.going.loss, summed = self.going.loss + self._checked(summed), torch.zeros_like(summed)
                    self._save()
            self.going.loss += self._checked(summed)
            rate = (self.layout.steps - start) * self.recipe.batch / (time.monotonic() - begin)
            self._finish_epoch(epoch, rate, tell)
            if self._save_is_due:  # not before: a run that goes on from an epoch's end would lack its record
                self._save()
        self._save()
        return self._conclude()

    def _step(self, batch: Batch) -> torch.Tensor:
        seed_everything(self.layout.seed, "step", self.going.step, self.place.ranks.rank)
        loss = self.trainee.step(self.going.step, *self.feed.prepared(batch))
        self.going.step += 1
        return loss

    def _checked(self, summed: torch.Tensor) -> float:
        """The sum of losses, which is looked at now and then since that waits for the device."""
        loss = float(summed)
        if not math.isfinite(loss):
            raise NumericalError(
                f"The loss is {loss} before step {self.going.step} of {self.recipe.name}: take a lower rate with "
                "--set optimiser.rate=…, or clip gradients with --set optimiser.clip=1."
            )
        return loss

    def _finish_epoch(self, epoch: int, rate: float, tell: Callable[[str], None]) -> None:
        record = {
            "epoch": epoch + 1,
            "step": self.going.step,
            "rate": self.trainee.rate,
            "train_loss": self._mean_loss(),
            **self.feed.evaluated(self.trainee.model),
            f"{self.task.pace}_per_second": rate,
        }
        if self.trainee.average is not None:
            averaged = self.feed.evaluated(self.trainee.average)
            record |= {f"average_{name}": value for name, value in averaged.items()}
        self.going.history.append(record)
        if self.place.ranks.leads:
            write_history(self.folder.path, self.recipe, self.going.history)
        self.going.loss = 0.0
        tell(
            f"epoch {epoch + 1}/{self.recipe.epochs}: loss {record['train_loss']:.3f}, {self.task.phrase(record)}, "
            f"{rate:,.0f} {self.task.pace}/s"
        )
        if (epoch + 1) % self.recipe.monitor.every == 0 or epoch + 1 == self.recipe.epochs:
            self.look(self.going.step, tell)

    def _mean_loss(self) -> float:
        """Over the steps of the epoch and all ranks."""
        ranks = self.place.ranks
        total = ranks.total(torch.tensor(self.going.loss, dtype=torch.float64, device=self.place.device))
        return float(total) / (self.layout.steps * ranks.count)

    def look(self, step: int, tell: Callable[[str], None]) -> None:
        """Let the monitor measure."""
        if self.monitor is not None:
            self.monitor.measure(step)
            if self.monitor.latest is not None:
                tell(self.monitor.latest.line)

    def _words(self, epoch: int) -> str:
        last = f", {self.task.phrase(self.going.history[-1])}" if self.going.history else ""
        return f"epoch {epoch + 1}/{self.recipe.epochs}{last}"

    @property
    def _save_is_due(self) -> bool:
        return time.monotonic() - self._saved_at >= self.place.save_after

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self.place.ranks.leads:
            state = self.trainee.state()
            checkpoint.save(
                self.folder.path,
                {
                    "step": self.going.step,
                    "model": state["model"],
                    "average": state["average"],
                    "optimiser": state["optimiser"],
                    "loss": self.going.loss,
                    "history": self.going.history,
                },
            )

    def _conclude(self) -> Trained:
        history = tuple(self.going.history)
        words = self.task.phrase(history[-1])
        facts = {**self.task.facts, "setting": setting(self.recipe, self.task.fingerprints)}
        seed_everything(self.layout.seed, "after")
        seen = self.feed.watched(0, min(_ATTENDED, self.recipe.batch))["test"]
        if found := attended(self.trainee.model, seen):
            facts["attention"] = found
        trained = Trained(self.folder.path, self.recipe, self.layout.seed, history, facts, words)
        if self.place.ranks.leads:
            write_outcome(trained, self.folder, self.task, self.trainee.model, self.trainee.average)
        return trained
