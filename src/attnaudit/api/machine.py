"""What this machine has, and what of a model can be captured."""

from __future__ import annotations

from dataclasses import dataclass

from attnaudit.audit.inspection import inspect_model
from attnaudit.report.progress import busy
from attnaudit.sources.environment import machine, packages


@dataclass(frozen=True)
class DoctorFindings:
    """Titles, and under each names with what there is to say of them; and whether a model can be audited."""

    sections: dict[str, dict[str, str]]
    is_usable: bool = True


def doctor(model: str | None = None, *, download: bool = False) -> DoctorFindings:
    """Say what is installed; or, of a model, which attention layers can be captured and which not, and why.

    Args:
        model: a name; without local weights it is looked at with random ones, since what can be captured does not
            depend on them.
        download: allow the network for weights.
    """
    if model is None:
        return DoctorFindings({"Machine": machine(), "Packages": packages()})
    with busy(f"running {model} once"):
        found = inspect_model(model, download=download)
    if found.failure is not None:
        return DoctorFindings({f"{found.label}: nothing can be captured": {"reason": found.failure}}, is_usable=False)
    sections = {"captured": found.captured, "refused": found.refused, "warning": found.undecidable}
    return DoctorFindings({f"{found.label}: {title}": dict(rows) for title, rows in sections.items() if rows})
