"""What this machine has, and what of a model can be captured."""

from __future__ import annotations

from attnaudit.audit.inspection import inspect_model
from attnaudit.report.progress import busy
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
    with busy(f"running {model} once"):
        found = inspect_model(model, download=download)
    if found.failure is not None:
        return {f"{found.label}: nothing can be captured": {"reason": found.failure}}
    refused = {f"{found.label}: refused": dict(found.refused)} if found.refused else {}
    return {f"{found.label}: captured": dict(found.captured)} | refused
