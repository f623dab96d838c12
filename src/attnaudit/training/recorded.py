"""A training step as a CUDA graph: recorded once, then replayed.

A step of a small model is a thousand launches of a few microseconds each, and the host takes longer to ask for them
than the GPU to do them. Replayed, they cost the host one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from attnaudit.errors import AttnAuditError, ShapeError, UsageError, first_line
from attnaudit.records.recipe import Recipe
from attnaudit.training.processes import Ranks

#: Steps that run as they are before one is recorded: they compile, and the optimiser makes its memory in them.
_WARM_UP = 3


def check_recordable(recipe: Recipe, device: str, ranks: Ranks) -> None:
    """Fail unless a step of this training is the same work on tensors every time.

    With torch's fused AdamW it is. Others keep numbers on the host, which a recording would freeze, and few say so.
    """
    if torch.device(device).type != "cuda" or ranks.count > 1:
        raise UsageError("--graph records the steps of one process on a GPU: leave it out elsewhere.")
    if (name := recipe.optimiser.name) != "adamw":
        raise UsageError(
            f"--graph records steps of adamw alone, not of {name}: leave it out, or --set optimiser.name=adamw."
        )


class RecordedStep:
    """Calls `work(inputs, targets) -> loss` a few times, and from then on replays what it did to tensors.

    What changes from step to step must lie in tensors: inputs and targets are copied into those of the recording, and
    so are the learning rates. Random numbers are drawn anew in every replay, from where the global generator stands.
    The loss is overwritten by the next step.

    Args:
        work: a whole step, with inputs and targets of one shape.
        optimiser: one that can be recorded (`check_recordable`); its memory must stay where it is.
    """

    def __init__(self, work: Callable[[Tensor, Tensor], Tensor], optimiser: torch.optim.Optimizer) -> None:
        self._work, self._optimiser = work, optimiser
        self._warm_up = _WARM_UP
        self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of a step.

        Raises:
            AttnAuditError: what the step does cannot be recorded.
            ShapeError: a batch is not like the one that was recorded.
        """
        if self._warm_up:
            self._warm_up -= 1
            return self._aside(inputs, targets)
        if self._graph is None:
            self._graph = self._record(inputs, targets)
        _refill(self._inputs, inputs, "inputs")
        _refill(self._targets, targets, "targets")
        for rate, group in zip(self._rates, self._optimiser.param_groups, strict=True):
            rate.fill_(group["lr"])
        self._graph.replay()
        return self._loss

    def _aside(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """On a stream of its own, as recording will be: libraries keep some of their memory by stream."""
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
            with _generators_kept(), self._rates_in_tensors(), torch.cuda.graph(graph, stream=self._side):
                self._loss = self._work(self._inputs, self._targets)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise AttnAuditError(
                f"A step of this training cannot be recorded ({first_line(error)}): repeat the command without --graph."
            ) from error
        return graph

    @contextmanager
    def _rates_in_tensors(self) -> Iterator[None]:
        """Only while it is recorded: schedule and checkpoints deal in plain numbers."""
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


@contextmanager
def _generators_kept() -> Iterator[None]:
    """After a recording that fails the generators that took part in it give no more numbers: copies replace them."""
    kept = [(generator, generator.clone_state()) for generator in torch.cuda.default_generators]
    try:
        yield
    except BaseException:
        for generator, before in kept:
            generator.graphsafe_set_state(before)
        raise


def _refill(recorded: Tensor, new: Tensor, what: str) -> None:
    """`copy_` without its habit of repeating and rounding what does not fit."""
    if (recorded.shape, recorded.dtype) != (new.shape, new.dtype):
        raise ShapeError(
            f"A step was recorded for {what} of {_form(recorded)}, not of {_form(new)}: give batches of one form, or "
            "train without --graph."
        )
    recorded.copy_(new)


def _form(tensor: Tensor) -> str:
    return f"{'×'.join(map(str, tensor.shape)) or 'one number'}, {tensor.dtype}"
