"""What this machine has, what of a model can be captured, and where the time of an audit goes."""

from __future__ import annotations

from pathlib import Path

from attnaudit import defaults
from attnaudit.api.benchmark import benchmark
from attnaudit.audit.benchmark import Benchmark
from attnaudit.audit.inspection import inspect_model
from attnaudit.numerics.devices import device_name
from attnaudit.sources.environment import machine, packages

#: Titles, and under each names with what there is to say of them.
Diagnosis = dict[str, dict[str, str]]


def doctor(model: str | None = None, *, download: bool = False) -> Diagnosis:
    """Say what is installed; or, of a model, which attention layers can be captured and which not, and why.

    Args:
        model: a name; without local weights it is looked at with random ones, since what can be captured does not
            depend on them.
        download: allow the network for weights.
    """
    if model is None:
        return {"Machine": machine(), "Packages": packages()}
    found = inspect_model(model, download=download)
    if found.failure is not None:
        return {f"{found.label}: nothing can be captured": {"reason": found.failure}}
    refused = {f"{found.label}: refused": dict(found.refused)} if found.refused else {}
    return {f"{found.label}: captured": dict(found.captured)} | refused


def bench(
    model: str = defaults.BENCHED,
    inputs: str | Path | None = None,
    *,
    weights: str | Path | None = None,
    limit: int = defaults.LIMIT,
    device: str = defaults.DEVICE,
) -> Benchmark:
    """Time the default audit of a model by stage on this machine, beside the floor of its parts.

    Args:
        model: a vision or text model by name; without local weights it has random ones.
        inputs: a folder of images, or a text file or folder; by default those of an audit.
        weights: a local weights file.
        limit: how many inputs to draw.
        device: `auto`, `cpu` or `cuda`.
    """
    place, file = (None if given is None else Path(given) for given in (inputs, weights))
    return benchmark(model, place, file, limit, device_name(device))
