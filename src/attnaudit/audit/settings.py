"""What decides the numbers of an audit; two runs with equal settings and inputs have equal evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.measures import DEFAULT_MEASURES, Measure, Reference, Selection, select
from attnaudit.records import json_file
from attnaudit.records.audit_file import AuditConventions
from attnaudit.theories.base import Theory


@dataclass(frozen=True)
class AuditSettings(AuditConventions):
    """The conventions of an audit with our measures by default, and what their names mean."""

    measures: tuple[str, ...] = DEFAULT_MEASURES

    @staticmethod
    def of(selection: Selection, device: str = "cpu") -> AuditSettings:
        """The names of what was selected."""
        return AuditSettings(
            selection.protocol,
            tuple(measure.name for measure in selection.measures),
            tuple(theory.name for theory in selection.theories),
            tuple(reference.name for reference in selection.references),
            selection.repeats,
            selection.seed,
            device,
        )

    def selection(self, own: Sequence[Measure | Theory | Reference] = ()) -> Selection:
        """What the names mean; `own` are the objects among them that no registry knows.

        Raises:
            UsageError: a name is unknown.
        """
        return select(
            measures=[*self.measures, *(each for each in own if isinstance(each, Measure))],
            theories=[*self.theories, *(each for each in own if isinstance(each, Theory))],
            references=[*self.references, *(each for each in own if isinstance(each, Reference))],
            repeats=self.repeats,
            seed=self.seed,
            protocol=self.protocol,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data that JSON gives back unchanged, for hashes and comparison."""
        return dict(json_file.plain(self))
