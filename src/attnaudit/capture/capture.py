"""Model and inputs in, every attention head out, with a certificate that it is what the model computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from attnaudit.capture.captured import Capture, Transcript
from attnaudit.capture.collector import Collector
from attnaudit.capture.heads import Heads
from attnaudit.errors import InputError

#: What a model is called with, batch first: a tensor, positional arguments, or keyword arguments.
Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]


def capture(
    model: nn.Module,
    inputs: Inputs,
    names: Sequence[str] | None = None,
    *,
    model_name: str | None = None,
) -> Capture:
    """Run `model` once on `inputs` and return every attention head.

    Args:
        model: any torch module; it runs in evaluation mode and is bit-identical afterwards.
        inputs: what the model is called with: a tensor, a tuple of arguments, or a mapping of keyword arguments; batch
            first.
        names: one name per input, `input-0`, `input-1`, … by default.
        model_name: how the heads are labelled, the class name by default.

    Raises:
        CaptureError: no layer could be captured; the message names layers and reasons. A layer that cannot be
            captured beside others that can, or whose replay error is above `collector.TOLERANCE`, is in
            `Capture.refusals`.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile keeps the module it wraps here
    names = tuple(names) if names is not None else tuple(f"input-{i}" for i in range(batch_size(inputs)))
    model_name = model_name or type(model).__name__
    layers: list[Heads] = []
    with evaluating(model):
        seen = capture_each(model, inputs, names, layers.append, model_name=model_name)
    seen.require_heads(model_name)
    # Handed over, not shared: recorder and collector hold each other, so what they reach outlives its use.
    kept = tuple(layers)
    layers.clear()
    return Capture(kept, tuple(seen.layer_names.values()), seen.certificate, seen.refusals)


def capture_each(
    model: nn.Module, inputs: Inputs, names: Sequence[str], on_layer: Callable[[Heads], None], *, model_name: str
) -> Transcript:
    """Run `model` once, in the mode it is in, and hand over every layer as soon as it has run: none is kept."""
    batch = batch_size(inputs)
    if len(names) != batch:
        raise InputError(f"{len(names)} names were given for a batch of {batch} inputs.")
    collector = Collector(model, names, model_name, on_layer)
    with collector.recorder.watching():
        if isinstance(inputs, Mapping):
            model(**inputs)
        else:
            model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return collector.finish()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; each module's own mode afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def batch_size(inputs: Inputs) -> int:
    """How many inputs a batch has: the first axis of its first tensor."""
    parts = (inputs,) if isinstance(inputs, Tensor) else inputs.values() if isinstance(inputs, Mapping) else inputs
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if not tensors or tensors[0].dim() == 0 or tensors[0].shape[0] == 0:
        raise InputError("The inputs hold no tensor with a batch axis: pass a tensor, a tuple or a mapping of them.")
    return tensors[0].shape[0]
