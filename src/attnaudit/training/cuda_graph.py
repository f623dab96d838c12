"""A training step as a CUDA graph: recorded once, then replayed.

A step of a small model consists of a thousand launches of a few microseconds each, and the host takes longer to launch
them than the GPU to run them. A replay costs the host one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from attnaudit.errors import AttnAuditError, ShapeError, UsageError, first_line
from attnaudit.numerics.randomness import preserved_generators
from attnaudit.records.recipe import Recipe
from attnaudit.training.distributed import DeviceSettings

#: Plain steps before one is recorded, in which compilation happens and the optimiser allocates its state.
_WARM_UP = 3


def check_recordable(recipe: Recipe, settings: DeviceSettings) -> None:
    """Check that every step of a training is the same work on tensors.

    It is with torch's fused AdamW. Other optimisers keep numbers on the host, which a recording would freeze, and few
    of them say so.

    Raises:
        UsageError: it is not.
    """
    if torch.device(settings.device).type != "cuda" or settings.ranks.count > 1:
        ranks = f"{settings.ranks.count} process{'es' * (settings.ranks.count > 1)}"
        raise UsageError(f"--graph needs one process on a GPU, got {ranks} on {settings.device}: leave it out.")
    if (name := recipe.optimiser.name) != "adamw":
        raise UsageError(f"--graph needs the optimiser adamw, got {name}: leave it out, or --set optimiser.name=adamw.")


class RecordedStep:
    """Calls `work(inputs, targets) -> loss` a few times, then records it and replays the recording.

    Whatever changes from step to step must be in tensors: inputs, targets and learning rates are copied into those of
    the recording. Each replay draws new random numbers from the global generator. The next step overwrites the loss.

    Args:
        work: a whole step, for inputs and targets of one shape.
        optimiser: one that can be recorded (`check_recordable`); its tensors must stay the same.
    """

    def __init__(self, work: Callable[[Tensor, Tensor], Tensor], optimiser: torch.optim.Optimizer) -> None:
        self._work, self._optimiser = work, optimiser
        self._warm_up = _WARM_UP
        self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of a step.

        Raises:
            AttnAuditError: the step cannot be recorded.
            ShapeError: a batch has another shape or type than the recorded one.
        """
        if self._warm_up:
            self._warm_up -= 1
            return self._on_side_stream(inputs, targets)
        if self._graph is None:
            self._graph = self._record(inputs, targets)
        _refill(self._inputs, inputs, "inputs")
        _refill(self._targets, targets, "targets")
        for rate, group in zip(self._rates, self._optimiser.param_groups, strict=True):
            rate.fill_(group["lr"])
        self._graph.replay()
        return self._loss

    def _on_side_stream(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Run on the stream that recording will use: libraries keep some of their memory by stream."""
        own = torch.cuda.current_stream()
        self._side.wait_stream(own)
        with torch.cuda.stream(self._side):
            loss = self._work(inputs, targets)
        own.wait_stream(self._side)
        return loss

    def _record(self, inputs: Tensor, targets: Tensor) -> torch.cuda.CUDAGraph:
        self._inputs, self._targets = inputs.clone(), targets.clone()
        self._rates = [torch.zeros((), device=inputs.device) for _ in self._optimiser.param_groups]
        self._optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with preserved_generators(), self._rates_in_tensors(), torch.cuda.graph(graph, stream=self._side):
                self._loss = self._work(self._inputs, self._targets)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise AttnAuditError(
                f"The training step cannot be recorded ({first_line(error)}): repeat the command without --graph."
            ) from error
        return graph

    @contextmanager
    def _rates_in_tensors(self) -> Iterator[None]:
        """While recording only: schedule and checkpoints use plain numbers."""
        groups = self._optimiser.param_groups
        before = [dict(group) for group in groups]
        for rate, group in zip(self._rates, groups, strict=True):
            group |= {"lr": rate, "capturable": True}
        try:
            yield
        finally:
            for group, was in zip(groups, before, strict=True):
                group.clear()
                group |= was


def _refill(recorded: Tensor, new: Tensor, what: str) -> None:
    """`copy_`, but without its broadcasting and rounding."""
    if (recorded.shape, recorded.dtype) != (new.shape, new.dtype):
        raise ShapeError(
            f"The step was recorded for {what} of {_form(recorded)}, got {_form(new)}: use batches of one shape, or "
            "train without --graph."
        )
    recorded.copy_(new)


def _form(tensor: Tensor) -> str:
    return f"{'×'.join(map(str, tensor.shape)) or 'one number'}, {tensor.dtype}"
