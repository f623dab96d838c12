"""A model with what moves it: timm's optimiser and schedule, an average of weights, autocast, several ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from attnaudit.attention import ksvd_loss
from attnaudit.errors import AttnAuditError
from attnaudit.extras import optional
from attnaudit.numerics.precision import autocast
from attnaudit.records.recipe import Recipe
from attnaudit.training.average import WeightAverage
from attnaudit.training.processes import Ranks
from attnaudit.training.recorded import RecordedStep, check_recordable


class Trainee:
    """One training step after another; the learning rate follows from the number of the step."""

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        steps_per_epoch: int,
        device: str,
        ranks: Ranks,
        *,
        compiled: bool = False,
        recorded: bool = False,
    ) -> None:
        if recorded:
            check_recordable(recipe, device, ranks)
        self.recipe, self._recorded = recipe, recorded
        self.device = torch.device(device)
        self.model = model.to(device).train()
        wishes = recipe.optimiser
        timm_optim, timm_scheduler = (optional(f"timm.{part}", "timm", "Training") for part in ("optim", "scheduler"))
        fused = {"fused": True} if wishes.name == "adamw" and self.device.type == "cuda" else {}
        self.optimiser: torch.optim.Optimizer = timm_optim.create_optimizer_v2(
            self.model, opt=wishes.name, lr=wishes.rate, weight_decay=wishes.weight_decay, **fused
        )
        self._schedule = timm_scheduler.CosineLRScheduler(
            self.optimiser,
            t_initial=recipe.epochs * steps_per_epoch,
            lr_min=wishes.smallest_rate,
            warmup_t=round(wishes.warmup_epochs * steps_per_epoch),
            warmup_lr_init=wishes.warmup_rate,
            t_in_epochs=False,
        )
        self._average = None if recipe.average is None else WeightAverage(self.model, recipe.average)
        self._parameters = list(self.model.parameters())
        called: nn.Module = self.model
        if ranks.count > 1:
            called = DistributedDataParallel(called, device_ids=None if self.device.type == "cpu" else [self.device])
        self._called: Any = torch.compile(called) if compiled else called
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
        """Step `number` on a batch whose targets are classes or probabilities, a row for every prediction; its loss.

        The loss is good until the next step.

        Raises:
            AttnAuditError: the batch does not fit into memory.
        """
        self._schedule.step_update(number)
        if self._average is not None:
            self._average.turn_to(number)
        try:
            return self._step(inputs, targets)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
                raise
            raise AttnAuditError(
                f"A batch of {len(inputs)} {self.recipe.examples} of {self.recipe.model.tokens} tokens does not fit "
                f"into the memory of {self.device}: give a smaller one with --set batch=…"
            ) from error

    def _new_step(self) -> Callable[[Tensor, Tensor], Tensor]:
        return RecordedStep(self._work, self.optimiser) if self._recorded else self._work

    def _work(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """What a step does to tensors."""
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
        loss = functional.cross_entropy(logits.float().flatten(0, -2), targets)
        if self.recipe.ksvd_weight:
            loss = loss + self.recipe.ksvd_weight * ksvd_loss(self.model)
        return loss

    def state(self) -> dict[str, Any]:
        """Weights, averaged weights and the optimiser's memory."""
        average = None if self.average is None else self.average.state_dict()
        return {"model": self.model.state_dict(), "average": average, "optimiser": self.optimiser.state_dict()}

    def restore(self, state: Any) -> None:
        """The reverse of `state`."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self._step = self._new_step()  # the optimiser's memory lies elsewhere now, where a recording would not look
