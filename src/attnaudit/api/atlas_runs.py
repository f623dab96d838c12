"""What every run of an atlas has in common, and how a run that somebody else left there differs from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from attnaudit import defaults
from attnaudit.api.runs import Run
from attnaudit.audit import AuditSettings
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_named, theories_for
from attnaudit.display import counted, enumerated
from attnaudit.errors import AttnAuditError, RunFolderError
from attnaudit.measures import REFERENCES, select
from attnaudit.numerics.devices import device_name
from attnaudit.protocol import Protocol
from attnaudit.sources.catalogue import CatalogueEntry
from attnaudit.sources.model import parse_model
from attnaudit.sources.selection import InputSelection, select_inputs
from attnaudit.theories.registry import ALL

#: More names than these are counted.
_NAMED = 3


@dataclass(frozen=True)
class AtlasRuns:
    """The claims and settings of every run of an atlas, and how its inputs are drawn."""

    claims: tuple[str, ...]
    settings: AuditSettings
    drawn: InputSelection

    @staticmethod
    def of(claims: tuple[str, ...], limit: int | None, seed: int, device: str) -> AtlasRuns:
        """With the defaults of an audit, and all theories.

        Raises:
            UsageError: limit, seed or device is invalid.
        """
        selection = select(
            theories=(*theories_for(claims_named(claims, RecordKind.AUDIT)), *ALL),
            references=tuple(REFERENCES),
            repeats=defaults.REPEATS,
            seed=seed,
            protocol=Protocol.EXACT,
        )
        settings = AuditSettings.of(selection, device_name(device))
        return AtlasRuns(claims, settings, InputSelection(limit=limit, seed=seed, known_only=True))

    def check(self, run: Run, entry: CatalogueEntry) -> None:
        """Check that a finished run is one of this atlas; the device that it was made on does not matter.

        Raises:
            RunFolderError: it is another one.
        """
        found = list(self._differences(run, entry))
        if found:
            raise RunFolderError(
                f"{run.path} holds another run than the atlas would make ({', '.join(found)}): move it elsewhere, and "
                "the model is audited."
            )

    def _differences(self, run: Run, entry: CatalogueEntry) -> Iterator[str]:
        if "random" in run.settings.weights.values():
            yield "random weights"
        elif run.models != [entry.name]:
            yield f"the model {' and '.join(run.models)}"
        there, here = run.settings.identity.settings, self.settings
        for name in ("protocol", "seed", "repeats"):
            if getattr(there, name) != getattr(here, name):
                yield f"{name} {getattr(there, name)} and not {getattr(here, name)}"
        for name, own, wanted in (
            ("claim", list(run.summary.claims), self.claims),
            ("theory", there.theories, here.theories),
            ("reference", there.references, here.references),
        ):
            yield from _other_names(name, own, wanted)
        for name, number, wanted_number in (
            ("threshold", run.summary.threshold, defaults.THRESHOLD),
            ("chance", run.summary.chance, defaults.CHANCE),
        ):
            if number != wanted_number:
                yield f"{name} {number} and not {wanted_number}"
        yield from self._other_inputs(len(run.settings.identity.inputs), entry)

    def _other_inputs(self, found: int, entry: CatalogueEntry) -> Iterator[str]:
        """A model may have fewer inputs than the limit, but only if there are no more."""
        limit = self.drawn.limit
        wanted = limit if limit is not None and found >= limit else self._available(entry)
        if wanted not in (None, found):
            yield f"{counted(found, 'input')} and not {wanted}"

    def _available(self, entry: CatalogueEntry) -> int | None:
        """How many inputs would be drawn for a model; None if it is not here."""
        try:
            selected = select_inputs([parse_model(entry.name)], self.drawn, self.settings.protocol)
        except AttnAuditError:
            return None
        return sum(len(shard.identity) for shard in selected.shards)


def _other_names(kind: str, found: Collection[str], wanted: Collection[str]) -> Iterator[str]:
    """Which names are missing, and which are there in addition."""
    for word, names in (
        ("missing", [name for name in wanted if name not in found]),
        ("in addition", [name for name in found if name not in wanted]),
    ):
        if names:
            yield f"{_listed(kind, names)} {word}"


def _listed(kind: str, names: list[str]) -> str:
    kinds = kind if len(names) == 1 else f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
    return f"{len(names)} {kinds}" if len(names) > _NAMED else f"{kinds} {enumerated(names, 'and')}"
