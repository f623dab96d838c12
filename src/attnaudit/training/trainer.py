"""A model in training: one step after another, and the checkpoint from which it can be resumed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from attnaudit.attention import PCAPenalty, ksvd_loss
from attnaudit.errors import AttnAuditError, RunFolderError
from attnaudit.numerics.compiling import compile_errors
from attnaudit.numerics.digest import content_digest
from attnaudit.numerics.memory import is_out_of_memory
from attnaudit.numerics.precision import autocast
from attnaudit.records.files import write_whole
from attnaudit.records.recipe import Recipe
from attnaudit.training.batching import IGNORED
from attnaudit.training.cuda_graph import RecordedStep, check_recordable
from attnaudit.training.distributed import DeviceSettings, Ranks
from attnaudit.training.optimiser import WeightAverage, build_optimiser, build_schedule

CHECKPOINT = "checkpoint.pt"
#: The digest of a checkpoint's content stands at its end.
_DIGEST_SIZE = 32
#: What torch's reader raises, depending on which bytes are wrong.
_DAMAGED = (OSError, RuntimeError, EOFError, ValueError, LookupError, AttributeError, TypeError, pickle.UnpicklingError)


class TrainerState(TypedDict):
    """Weights, averaged weights, and the state of the optimiser."""

    model: dict[str, Tensor]
    average: dict[str, Tensor] | None
    optimiser: dict[str, Any]


class Checkpoint(TrainerState):
    """The state after `step` steps; `loss` is the sum over those of the current epoch."""

    step: int
    loss: float
    history: list[dict[str, float]]


class Trainer:
    """A model with its optimiser, schedule and average. The learning rate follows from the number of the step."""

    def __init__(self, model: nn.Module, recipe: Recipe, steps_per_epoch: int, settings: DeviceSettings) -> None:
        if settings.graph:
            check_recordable(recipe, settings)
        self.recipe, self._graph = recipe, settings.graph
        self.device, self._ranks = torch.device(settings.device), settings.ranks
        self.model = model.to(settings.device).train()
        self.optimiser = build_optimiser(self.model, recipe.optimiser, self.device)
        self._schedule = build_schedule(self.optimiser, recipe.optimiser, recipe.epochs, steps_per_epoch)
        self._average = None if recipe.average is None else WeightAverage(self.model, recipe.average)
        self._parameters = list(self.model.parameters())
        self._penalty = PCAPenalty(self.model) if recipe.pca_weight else None
        called: nn.Module = self.model
        if settings.ranks.count > 1:
            called = DistributedDataParallel(called, device_ids=None if self.device.type == "cpu" else [self.device])
        self._called: Any = torch.compile(called) if settings.compiled else called
        self._step = self._new_step()

    @property
    def average(self) -> nn.Module | None:
        """The model with averaged weights."""
        return None if self._average is None else self._average.module

    @property
    def rate(self) -> float:
        """The learning rate of the last step."""
        return float(self.optimiser.param_groups[0]["lr"])

    def step(self, number: int, inputs: Tensor, targets: Tensor) -> Tensor:
        """Take step `number`, and return its loss, which the next step may overwrite.

        `targets` are classes or probabilities, a row for every prediction.

        Raises:
            AttnAuditError: the batch does not fit into memory, or the model cannot be compiled.
        """
        self._schedule.step_update(number)
        if self._average is not None:
            self._average.set_step(number)
        try:
            with compile_errors():
                return self._step(inputs, targets)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise AttnAuditError(
                f"A batch of {len(inputs)} {self.recipe.examples} of {self.recipe.model.tokens} tokens does not fit "
                f"into the memory of {self.device}: use a smaller one with --set batch=…"
            ) from error

    def _new_step(self) -> Callable[[Tensor, Tensor], Tensor]:
        return RecordedStep(self._run_step, self.optimiser) if self._graph else self._run_step

    def _run_step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The part of a step that is work on tensors only."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self._loss(inputs, targets)
        torch.autograd.backward(loss)
        if self.recipe.optimiser.clip is not None:
            nn.utils.clip_grad_norm_(self._parameters, self.recipe.optimiser.clip)
        self.optimiser.step()
        if self._average is not None:
            self._average.update()
        return loss.detach()

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        with autocast(self.device, self.recipe.precision):
            logits = self._called(inputs)
        loss = mean_cross_entropy(logits.float().flatten(0, -2), targets, self._ranks)
        if self.recipe.ksvd_weight:
            loss = loss + self.recipe.ksvd_weight * ksvd_loss(self.model)
        if self._penalty is not None:
            loss = loss + self.recipe.pca_weight * self._penalty.loss()
        return loss

    def state(self) -> TrainerState:
        """All that `restore` needs."""
        average = None if self.average is None else self.average.state_dict()
        return {"model": self.model.state_dict(), "average": average, "optimiser": self.optimiser.state_dict()}

    def restore(self, state: TrainerState) -> None:
        """Continue from a state.

        Raises:
            RunFolderError: its optimiser has other groups of weights.
        """
        self.model.load_state_dict(state["model"])
        try:
            self.optimiser.load_state_dict(state["optimiser"])
        except ValueError as error:
            raise RunFolderError(
                f"{CHECKPOINT} is of a version of attnaudit whose optimiser decays other weights: delete it to start "
                "again, or use another --out folder."
            ) from error
        if self.average is not None and state["average"] is not None:
            self.average.load_state_dict(state["average"])
        self._step = self._new_step()  # the optimiser has new tensors, which an old recording would not use


def mean_cross_entropy(logits: Tensor, targets: Tensor, ranks: Ranks | None = None) -> Tensor:
    """As torch's, to the last bit, but 0 if no target has a class: a batch of masks may lack labelled pixels.

    The mean over ranks is that of the whole batch: each divides by its share of all labelled targets, which may be more
    than it has itself.
    """
    if targets.is_floating_point():
        return functional.cross_entropy(logits, targets)
    summed = functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")
    labelled, count = (targets != IGNORED).sum(), 1 if ranks is None else ranks.count
    return summed * count / (labelled if ranks is None else ranks.total(labelled)).clamp(min=1)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        RunFolderError: it cannot be written; the previous one is still there.
    """
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    content = buffer.getvalue()
    write_whole(folder / CHECKPOINT, content + content_digest([content]).encode())


def load_checkpoint(folder: Path, device: str) -> Checkpoint | None:
    """The checkpoint of a folder, or None; only tensors and plain data are read, no code.

    Raises:
        RunFolderError: it is damaged.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        content = path.read_bytes()
        content, found = content[:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
        if content_digest([content]).encode() != found:
            raise ValueError("the digest is another")
        checkpoint: Checkpoint = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        missing = Checkpoint.__required_keys__ - checkpoint.keys()
    except _DAMAGED as error:
        raise RunFolderError(f"{path} is damaged: delete it to start again, or use another --out folder.") from error
    if missing:
        raise RunFolderError(f"{path} is not a checkpoint of attnaudit: it lacks {', '.join(sorted(missing))}.")
    return checkpoint
