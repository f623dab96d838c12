"""What moves the weights: timm's optimisers and schedule, and the moving average of the weights."""

from __future__ import annotations

import copy
import difflib
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.display import enumerated
from attnaudit.errors import UsageError, first_line
from attnaudit.extras import optional
from attnaudit.numerics.randomness import preserved_random_state
from attnaudit.records.recipe import OptimiserSettings


def check_optimiser(name: str, device: str = "cpu") -> None:
    """Check that timm has the optimiser and can build it here, and that it takes a step with gradients alone.

    Raises:
        UsageError: it has not, with similar names, or it cannot.
    """
    timm = optional("timm.optim", "timm", "Training")
    known = timm.list_optimizers()
    if name.removeprefix("lookahead_") not in known:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {enumerated(close)}?" if close else "adamw, lamb and sgd are valid, for example."
        raise UsageError(f"optimiser: timm has no optimiser {name!r}: {hint}")
    weight = nn.Parameter(torch.ones(1, 1, device=device))
    try:
        optimiser = timm.create_optimizer_v2([weight], opt=name, lr=1.0)
    except (ImportError, AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(f"optimiser: timm cannot build {name!r} here ({first_line(error)}): use adamw.") from error
    weight.grad = torch.ones_like(weight)
    try:
        with preserved_random_state():
            optimiser.step()
    except (RuntimeError, TypeError, ValueError) as error:  # of a Hessian, or a closure, which training does not give
        raise UsageError(
            f"optimiser: {name!r} cannot take a step with gradients alone ({first_line(error)}): use adamw."
        ) from error


def build_optimiser(model: nn.Module, settings: OptimiserSettings, device: torch.device) -> torch.optim.Optimizer:
    """Timm's optimiser of this name; AdamW is fused on a GPU."""
    timm = optional("timm.optim", "timm", "Training")
    fused = {"fused": True} if settings.name == "adamw" and device.type == "cuda" else {}
    optimiser: torch.optim.Optimizer = timm.create_optimizer_v2(
        model, opt=settings.name, lr=settings.rate, weight_decay=settings.weight_decay, **fused
    )
    return optimiser


def build_schedule(optimiser: torch.optim.Optimizer, settings: OptimiserSettings, epochs: int, steps: int) -> Any:
    """Timm's cosine after a linear warm-up, updated in each of the `steps` of an epoch."""
    return optional("timm.scheduler", "timm", "Training").CosineLRScheduler(
        optimiser,
        t_initial=epochs * steps,
        lr_min=settings.smallest_rate,
        warmup_t=round(settings.warmup_epochs * steps),
        warmup_lr_init=settings.warmup_rate,
        t_in_epochs=False,
    )


class WeightAverage:
    """θ̄ ← β_t θ̄ + (1 - β_t) θ with β_t = min(β, (1 + t)/(10 + t)), so that the start is soon forgotten.

    timm's average goes through both state dictionaries in every step, and a small model on a GPU has to wait for that;
    this one keeps the lists of tensors. Buffers are copied. 1 - β_t is a tensor on the device, so that every update is
    the same work and can be recorded.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self._own: list[Tensor] = list(self.module.parameters())
        self._theirs: list[Tensor] = list(model.parameters())
        self._buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        self._weight = torch.zeros((), device=self._own[0].device)

    def set_step(self, step: int) -> None:
        """Set the number of the next step, counted from 0."""
        self._weight.fill_(1 - min(self.decay, (1 + step) / (10 + step)))

    @torch.no_grad()
    def update(self) -> None:
        """Include the weights after that step."""
        difference = torch._foreach_sub(self._theirs, self._own)
        torch._foreach_mul_(difference, self._weight)
        torch._foreach_add_(self._own, difference)
        for own, theirs in self._buffers:
            own.copy_(theirs)
