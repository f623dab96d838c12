"""Looking at a model in the middle of its training, and leaving no trace: the run goes on bit for bit as without it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from attnaudit.numerics.randomness import preserved_random_state

Mode = Literal["eval", "train"]


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, inside `torch.compile` and (distributed) data parallelism; its parameters are the same."""
    while True:
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


@contextmanager
def untouched(model: nn.Module, mode: Mode, seed: int) -> Iterator[None]:
    """Inside: the model in `mode`, run as it is written, in the type of its parameters, with randomness from `seed`.

    Afterwards every module's mode, buffers and attributes, and all random states, are what they were. Buffers are
    exchanged for copies, not written back: a graph that waits for its backward pass may still need the originals.
    """
    with _random_state(model, seed), _module_state(model), _as_written(model):
        for module in model.modules():  # not model.train(), which some modules take as a sign to fold their weights
            module.training = mode == "train"
        yield


@contextmanager
def _random_state(model: nn.Module, seed: int) -> Iterator[None]:
    devices = sorted({parameter.device.index for parameter in model.parameters() if parameter.is_cuda})
    with preserved_random_state():
        torch.default_generator.manual_seed(seed)
        for device in devices:  # not torch.manual_seed, which reseeds devices that are not this model's
            torch.cuda.default_generators[device].manual_seed(seed)
        yield


@contextmanager
def _module_state(model: nn.Module) -> Iterator[None]:
    modules = list(model.modules())
    attributes = [dict(module.__dict__) for module in modules]
    buffers = [dict(module._buffers) for module in modules]
    copies: dict[int, Tensor] = {}  # by identity: what modules share they go on sharing
    try:
        for module in modules:
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
        yield
    finally:
        for module, attribute, buffer_set in zip(modules, attributes, buffers, strict=True):
            for name in module.__dict__.keys() - attribute.keys():
                del module.__dict__[name]
            module.__dict__.update(attribute)
            module._buffers.clear()
            module._buffers.update(buffer_set)


@contextmanager
def _as_written(model: nn.Module) -> Iterator[None]:
    """Neither compiled nor under autocast, whoever asked for it; `_module_state` puts back what is taken off here."""
    for module in model.modules():
        if "_original_forward" in module.__dict__:  # what Accelerate leaves beside its autocasting forward
            module.__dict__["forward"] = module.__dict__["_original_forward"]
    with ExitStack() as stack:
        kinds = {"cpu", *(parameter.device.type for parameter in model.parameters())}
        for kind in filter(torch.amp.is_autocast_available, kinds):
            stack.enter_context(torch.autocast(kind, enabled=False))
        if hasattr(torch.compiler, "set_stance"):  # torch 2.6: reaches also parts that were compiled by themselves
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad")  # reentrant checkpointing
        yield
