"""Measure one model: what it runs, what capture says of it, and whether the two agree."""

from __future__ import annotations

import platform
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import torch
from benchmarks.coverage.account import account
from benchmarks.coverage.case import Case, Inputs, Unsupported
from benchmarks.coverage.expected import expected
from benchmarks.coverage.hugging_face.returned import returned_attention
from benchmarks.coverage.libraries import LIBRARIES
from benchmarks.coverage.result import Result
from benchmarks.coverage.said import Layer, said
from benchmarks.coverage.spread import spread
from benchmarks.coverage.weights import ordered_difference
from torch import Tensor, nn

#: The seed of weights, inputs, and whatever a model draws while it runs.
SEED = 0
#: Weights that differ by less are the same.
FOUND = 1e-4


def measure(case: Case, device: str = "cpu") -> Result:
    """The result for one model on a device; a model that cannot be built or run says why."""
    start = time.perf_counter()
    warnings.simplefilter("ignore")
    result = _measure(case, device)
    result.seconds = round(time.perf_counter() - start, 2)
    result.versions = _versions(case, device)
    return result


def _versions(case: Case, device: str) -> str:
    packages = dict.fromkeys(("torch", LIBRARIES[case.library].distribution))
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"Python {platform.python_version()}, {versions}" + (f", on {device}" if device != "cpu" else "")


def _measure(case: Case, device: str) -> Result:
    result = Result(case.library, case.model, case.implementation)
    try:
        torch.manual_seed(SEED)
        model, inputs = LIBRARIES[case.library].build(case)
        spread(model)
        model, inputs = model.to(device), _on(device, inputs)
        torch.manual_seed(SEED)
        events = expected(model, inputs)
    except Unsupported as reason:
        result.unsupported = str(reason)
        return result
    except Exception as error:  # any error of any library: it is reported
        result.not_run = _last_lines(error)
        return result
    result.expected = sum(event.is_attention for event in events)
    try:
        torch.manual_seed(SEED)
        heard = said(model, inputs)
        if heard.packed and (single := _first_input(model, inputs)) is not None:
            result.inputs, inputs = 1, single
            torch.manual_seed(SEED)
            events = expected(model, inputs)
            result.expected = sum(event.is_attention for event in events)
            torch.manual_seed(SEED)
            heard = said(model, inputs)
    except Exception as error:
        result.crashed = _last_lines(error)
        return result
    found = account(events, heard)
    result.captured, result.missed, result.extra, result.other = found.captured, found.missed, found.extra, found.other
    result.listed = found.listed
    result.refused = [[layer, reason, count] for (layer, reason), count in found.refused.items()]
    if case.library == "transformers" and case.implementation == "eager":
        torch.manual_seed(SEED)
        _compare_returned(result, returned_attention(model, inputs), [layer for _, layer in heard.captured])
    result.replay_error, result.compared, result.difference = heard.error, found.compared, found.difference
    return result


def _on(device: str, inputs: Any) -> Any:
    """The inputs on a device."""
    if isinstance(inputs, Mapping):
        return {name: _on(device, value) for name, value in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_on(device, value) for value in inputs)
    return inputs.to(device) if isinstance(inputs, Tensor) else inputs


def _first_input(model: nn.Module, inputs: Inputs) -> Inputs | None:
    """The first of the two inputs, which are one after the other in every tensor; None if the model takes no less."""

    def half(value: Any) -> Any:
        return value[: len(value) // 2] if isinstance(value, Tensor) and value.dim() else value

    if isinstance(inputs, Mapping):
        one: Inputs = {name: half(value) for name, value in inputs.items()}
    else:
        one = tuple(map(half, inputs)) if isinstance(inputs, tuple) else half(inputs)
    try:
        expected(model, one)
    except Exception:  # some models take batches only
        return None
    return one


def _compare_returned(result: Result, returned: Sequence[Tensor], captured: Sequence[Layer]) -> None:
    """Look for every returned tensor among the captured layers, heads in the same order."""
    result.returned = len(returned)
    for weights in returned:
        differences = [ordered_difference(layer[0], weights) for layer in captured if len(layer) == 1]
        least = min((difference for difference in differences if difference is not None), default=FOUND)
        if least < FOUND:
            result.returned_found += 1
            result.returned_difference = max(result.returned_difference, least)


def _last_lines(error: Exception) -> str:
    """The error, and the last places it came through."""
    frames: list[Any] = traceback.extract_tb(error.__traceback__)[-2:]
    places = " < ".join(f"{frame.filename.split('/')[-1]}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:900]} ({places})"
