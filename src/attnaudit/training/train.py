"""A training from start to finish: steps, evaluation, monitor, checkpoints; repeated, it goes on where it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError, NumericalError
from attnaudit.evidence.folder import RunFolder
from attnaudit.evidence.versions import installed_versions
from attnaudit.sources.labelled import LabelledPictures
from attnaudit.training import checkpoint, ranks
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batches import Layout, batches_of
from attnaudit.training.evaluation import Score, evaluate
from attnaudit.training.outcome import Trained, write_history, write_outcome
from attnaudit.training.processes import Ranks
from attnaudit.training.randomness import global_state_kept, seed_everything
from attnaudit.training.recipe import Recipe
from attnaudit.training.trainee import Trainee
from attnaudit.training.watching import monitor_of

#: Told of every step: (steps done, steps in all, a few words).
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Place:
    """Where and how a training runs; none of it decides what comes out, but for rounding.

    A checkpoint is written when the last one is `save_after` seconds old, and at the end.
    """

    device: str = "cpu"
    workers: int = 0
    compiled: bool = False
    save_after: float = 60.0
    ranks: Ranks = field(default_factory=Ranks)


@dataclass
class _Going:
    """What changes from step to step beside the model."""

    step: int = 0
    loss: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    recipe: Recipe,
    data: tuple[LabelledPictures, LabelledPictures],
    out: Path,
    *,
    seed: int = 0,
    place: Place | None = None,
    progress: Progress = lambda done, total, words: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train, or go on training, what a recipe says, in a run folder.

    Args:
        recipe: the settings; the number of classes is taken from the data.
        data: training and test pictures.
        out: the run folder: `run.json`, `checkpoint.pt`, `evidence/` of the monitor, and at the end `history.json`,
            `model.safetensors`, `average.safetensors`, `card.json` and `summary.json`.
        seed: of weights, order, augmentation and everything else that is random.
        place: device, worker processes, compilation, ranks.
        progress: told of every step.
        tell: given a line for every epoch and every look of the monitor.

    Raises:
        RunFolderError: the folder holds another training, or its checkpoint is damaged.
        NumericalError: the loss is no longer finite.
    """
    place = place or Place()
    recipe = recipe.for_classes(data[0].classes)
    layout = Layout(len(data[0]), recipe.batch, seed, place.ranks)
    folder = RunFolder(out)
    identity = {"recipe": recipe.identity, "seed": seed, "data": [half.fingerprint for half in data]}
    about = {"attnaudit": __version__, "versions": installed_versions(), "steps_per_epoch": layout.steps}
    new = ranks.together(lambda: place.ranks.leads and folder.open(identity, about, keep=("parts", "steps")))
    try:
        with global_state_kept():
            return _Training(recipe, data, folder, seed, place, layout).run(progress, tell)
    except AttnAuditError:
        if new and not (out / checkpoint.FILE).exists():
            folder.discard_if_empty()
        raise


class _Training:
    def __init__(
        self,
        recipe: Recipe,
        data: tuple[LabelledPictures, LabelledPictures],
        folder: RunFolder,
        seed: int,
        place: Place,
        layout: Layout,
    ) -> None:
        self.recipe, self.folder, self.seed, self.place, self.layout = recipe, folder, seed, place, layout
        self.labels = data[0].names
        saved = checkpoint.load(folder.path, place.device)
        seed_everything(seed, "before")
        self.trainee = Trainee(recipe, seed, layout.steps, place.device, place.ranks, compiled=place.compiled)
        self.going = _Going()
        if saved is not None:
            self.trainee.restore(saved)
            self.going = _Going(saved["step"], saved["loss"], saved["history"])
        self.pixels = DeviceAugmentation(recipe.augmentation, recipe.model.classes, place.device)
        self.train, self.test = (
            batches_of(half, recipe, seed, place.ranks, place.device, place.workers) for half in data
        )
        self.monitor = monitor_of(self.trainee.model, recipe, folder, (self.train, self.test), self.pixels, layout)
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
            for images, labels in self.train.training(epoch, start):
                summed += self._step(images, labels)
                progress(self.going.step, self.total, self._words(epoch))
                if time.monotonic() - self._saved_at >= self.place.save_after:
                    self.going.loss, summed = self.going.loss + self._checked(summed), torch.zeros_like(summed)
                    self._save()
            self.going.loss += self._checked(summed)
            rate = (self.layout.steps - start) * self.recipe.batch / (time.monotonic() - begin)
            self._finish_epoch(epoch, rate, tell)
        self._save()
        return self._conclude()

    def _step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        seed_everything(self.seed, "step", self.going.step, self.place.ranks.rank)
        images, targets = self.pixels.mixed(self.pixels.augmented(images), labels)
        loss = self.trainee.step(self.going.step, images, targets)
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
        score = self._evaluated(self.trainee.model)
        average = None if self.trainee.average is None else self._evaluated(self.trainee.average)
        record = {
            "epoch": epoch + 1,
            "step": self.going.step,
            "rate": self.trainee.rate,
            "train_loss": self.going.loss / self.layout.steps,
            "test_loss": score.loss,
            "test_accuracy": score.accuracy,
            "images_per_second": rate,
        }
        if average is not None:
            record |= {"average_test_loss": average.loss, "average_test_accuracy": average.accuracy}
        self.going.history.append(record)
        if self.place.ranks.leads:
            write_history(self.folder.path, self.going.history)
        self.going.loss = 0.0
        averaged = "" if average is None else f", averaged weights {average.accuracy:.2%}"
        tell(
            f"epoch {epoch + 1}/{self.recipe.epochs}: loss {record['train_loss']:.3f}, test accuracy "
            f"{score.accuracy:.2%}{averaged}, {rate:,.0f} images/s"
        )
        if (epoch + 1) % self.recipe.monitor.every == 0 or epoch + 1 == self.recipe.epochs:
            self.look(self.going.step, tell)

    def look(self, step: int, tell: Callable[[str], None]) -> None:
        """Let the monitor measure."""
        if self.monitor is not None:
            self.monitor.measure(step)
            if self.monitor.latest is not None:
                tell(self.monitor.latest.line)

    def _evaluated(self, model: torch.nn.Module) -> Score:
        return evaluate(model, self.test, self.pixels, self.recipe.precision, self.place.ranks)

    def _words(self, epoch: int) -> str:
        last = f", accuracy {self.going.history[-1]['test_accuracy']:.1%}" if self.going.history else ""
        return f"epoch {epoch + 1}/{self.recipe.epochs}{last}"

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
        trained = Trained(self.folder.path, self.recipe, self.seed, tuple(self.going.history))
        if self.place.ranks.leads:
            write_outcome(trained, self.folder, self.trainee.model, self.trainee.average, self.labels)
        return trained
