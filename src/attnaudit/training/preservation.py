"""Running a model in the middle of its training without a trace: the training continues bit for bit as without it."""

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
    """The model inside `torch.compile` and (distributed) data parallelism."""
    while True:
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


@contextmanager
def preserved_state(model: nn.Module, mode: Mode, seed: int) -> Iterator[None]:
    """Inside, the model is in `mode`, not compiled, without autocast, and draws random numbers from `seed`.

    Afterwards the mode, buffers and attributes of every module, and all random states, are restored. Buffers are
    replaced by copies, not written back: a graph that waits for its backward pass may still need the originals.
    """
    with _random_state(model, seed), _module_state(model), _plain_execution(model):
        for module in model.modules():  # not model.train(), in which some modules fold their weights
            module.training = mode == "train"
        yield


@contextmanager
def _random_state(model: nn.Module, seed: int) -> Iterator[None]:
    devices = sorted({parameter.device.index for parameter in model.parameters() if parameter.is_cuda})
    with preserved_random_state():
        torch.default_generator.manual_seed(seed)
        for device in devices:  # not torch.manual_seed, which also seeds devices that the model does not use
            torch.cuda.default_generators[device].manual_seed(seed)
        yield


@contextmanager
def _module_state(model: nn.Module) -> Iterator[None]:
    modules = list(model.modules())
    attributes = [dict(module.__dict__) for module in modules]
    buffers = [dict(module._buffers) for module in modules]
    copies: dict[int, Tensor] = {}  # by identity, so that modules keep sharing their buffers
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
def _plain_execution(model: nn.Module) -> Iterator[None]:
    """Turn off compilation and autocast, also those of Accelerate; `_module_state` restores its forward."""
    for module in model.modules():
        if "_original_forward" in module.__dict__:  # where Accelerate keeps the forward without autocast
            module.__dict__["forward"] = module.__dict__["_original_forward"]
    with ExitStack() as stack:
        kinds = {"cpu", *(parameter.device.type for parameter in model.parameters())}
        for kind in filter(torch.amp.is_autocast_available, kinds):
            stack.enter_context(torch.autocast(kind, enabled=False))
        if hasattr(torch.compiler, "set_stance"):  # torch 2.6: also for parts that were compiled separately
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad")  # reentrant checkpointing
        yield
