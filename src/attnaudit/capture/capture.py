"""Capture every attention head of a model, with a certificate that the heads are what the model computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from attnaudit.capture.argument_tensors import ArgumentTensors
from attnaudit.capture.collector import Collector
from attnaudit.capture.heads import Heads
from attnaudit.capture.input_masks import masks_of
from attnaudit.capture.primal import PrimalCall, recording_primal
from attnaudit.capture.result import Capture, CaptureLog
from attnaudit.errors import AttnAuditError, CaptureError, InputError, UsageError, first_line
from attnaudit.numerics.finite import first_not_finite
from attnaudit.numerics.randomness import preserved_random_state

#: The inputs of a model, batch first: a tensor, positional arguments, or keyword arguments.
Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]


def capture(
    model: nn.Module,
    inputs: Inputs,
    names: Sequence[str] | None = None,
    *,
    model_name: str | None = None,
    keep_padding: bool = False,
) -> Capture:
    """Run `model` once on `inputs` and return every attention head; those of Primal-Attention are in `primal`.

    Args:
        model: any torch module; it runs once, in evaluation mode. Weights, modes, hooks and random states are as before
            afterwards; what a module writes in a pass, such as a counter among its buffers, it writes in this one.
        inputs: a tensor, a tuple of arguments, or a mapping of keyword arguments; batch first.
        names: one name per input; by default `input-0`, `input-1`, …
        model_name: the label of the heads; by default the class name.
        keep_padding: count tokens that no query sees as tokens of the heads.

    Raises:
        CaptureError: no layer could be captured; the message names layers and reasons. If only some layers cannot be
            captured, or have a replay error above `collector.TOLERANCE`, they are listed in `Capture.refusals`.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile keeps the module it wraps here
    if not isinstance(model, nn.Module):
        raise UsageError(f"capture needs a torch module, got {type(model).__name__}: attnaudit.audit takes names too.")
    names = tuple(names) if names is not None else tuple(f"input-{i}" for i in range(batch_size(inputs)))
    if not names:
        raise InputError(f"Got no names for a batch of {batch_size(inputs)} inputs.")
    model_name = model_name or type(model).__name__
    _check_finite(inputs)
    layers: list[Heads] = []
    with preserved_random_state(), evaluating(model), naming_failures(model_name, names[0]):
        seen = capture_each(
            model,
            inputs,
            names,
            layers.append,
            model_name=model_name,
            primal_inputs=len(names),
            keep_padding=keep_padding,
        )
    if not seen.primal:
        seen.require_heads(model_name)
    # Recorder and collector form a reference cycle: clearing the list lets the heads be freed with the result.
    kept = tuple(layers)
    layers.clear()
    return Capture(
        kept,
        tuple(seen.layer_names[heads.index[0].layer] for heads in kept),
        seen.certificate,
        seen.refusals,
        seen.primal,
        seen.traits,
        seen.other_softmaxes,
    )


def capture_each(
    model: nn.Module,
    inputs: Inputs,
    names: Sequence[str],
    on_layer: Callable[[Heads], None],
    *,
    model_name: str,
    primal_inputs: int = 0,
    keep_padding: bool = False,
) -> CaptureLog:
    """Run `model` once, in its current mode, and pass each layer to `on_layer` as soon as it has run; none is kept.

    Of Primal-Attention layers, which are few and small, the log keeps the heads of the first `primal_inputs` inputs.
    """
    batch = batch_size(inputs)
    if len(names) != batch:
        raise InputError(f"Got {len(names)} names for a batch of {batch} inputs.")
    collector = Collector(model, names, model_name, on_layer, keep_padding=keep_padding, masks=masks_of(inputs))
    tensors = ArgumentTensors.of(inputs, batch)
    with recording_primal(model, batch, primal_inputs) as primal, collector.recorder.recording(tensors, batch):
        if isinstance(inputs, Mapping):
            model(**inputs)
        else:
            model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return _with_primal(collector.finish(), primal, names[:primal_inputs], model_name)


def _with_primal(log: CaptureLog, calls: Mapping[str, PrimalCall], names: Sequence[str], model_name: str) -> CaptureLog:
    """The log, in which Primal-Attention layers are captured, or refused for a reason of their own."""
    numbers = log.refused_numbers
    others = tuple(refusal for refusal in log.refusals if refusal.layer not in calls)
    return replace(
        log,
        refusals=others + tuple(call.refusal for call in calls.values() if call.refusal is not None),
        primal={
            layer: call.heads(model_name, names, numbers[layer])
            for layer, call in calls.items()
            if call.refusal is None
        },
    )


@contextmanager
def naming_failures(model_name: str, first_input: str) -> Iterator[None]:
    """Turn whatever a model raises, such as for inputs of a shape that it was not made for, into our error."""
    try:
        yield
    except AttnAuditError:
        raise
    except Exception as error:
        raise CaptureError(
            f"{model_name} fails on {first_input} ({type(error).__name__}: {first_line(error)}): give inputs of the "
            "shape and type that it takes."
        ) from error


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode; restore the mode of every module afterwards."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
    except NotImplementedError as error:
        raise CaptureError(
            f"{type(model).__name__} has no evaluation mode, as programs made by torch.export have none: capture the "
            "module that it was made from."
        ) from error
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def batch_size(inputs: Inputs) -> int:
    """The number of inputs in a batch: the first axis of its first tensor."""
    tensors = _tensors(inputs)
    if not tensors or tensors[0].dim() == 0 or tensors[0].shape[0] == 0:
        raise InputError(
            "The inputs have no tensor with a batch axis: pass a tensor, or a tuple or mapping of tensors, batch first."
        )
    return tensors[0].shape[0]


def _check_finite(inputs: Inputs) -> None:
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(_tensors(inputs))
    for name, tensor in named:
        is_mask = "mask" in name or "bias" in name if isinstance(name, str) else name > 0
        if isinstance(tensor, Tensor) and first_not_finite(tensor, is_mask=is_mask) is not None:
            raise InputError("The inputs hold NaN or infinite numbers, of which no head can be measured: remove them.")


def _tensors(inputs: Any) -> list[Tensor]:
    if not isinstance(inputs, (Tensor, Mapping, Sequence)):
        return []
    parts = (inputs,) if isinstance(inputs, Tensor) else inputs.values() if isinstance(inputs, Mapping) else inputs
    return [part for part in parts if isinstance(part, Tensor)]
