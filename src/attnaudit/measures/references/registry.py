"""The list of references: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attnaudit.measures.references.base import Reference, Role
from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.references.gaussian import GAUSSIAN
from attnaudit.measures.references.other_head import OTHER_HEAD
from attnaudit.measures.references.other_keys import OTHER_KEYS
from attnaudit.measures.references.planted import PLANTED, PLANTED_WITH_NOISE
from attnaudit.measures.references.random_keys import RANDOM_KEYS
from attnaudit.measures.references.random_projection import RANDOM_PROJECTION
from attnaudit.measures.references.reparametrised import REPARAMETRISED, REPARAMETRISED_NULL
from attnaudit.measures.references.rotated import ROTATED
from attnaudit.measures.references.shuffled_tokens import SHUFFLED_TOKENS
from attnaudit.measures.references.untrained import UNTRAINED
from attnaudit.theories.base import Theory

REFERENCES: Mapping[str, Reference] = {
    reference.name: reference
    for reference in (
        RANDOM_PROJECTION,
        RANDOM_KEYS,
        ROTATED,
        GAUSSIAN,
        SHUFFLED_TOKENS,
        OTHER_HEAD,
        OTHER_KEYS,
        BEST_PROJECTION,
        BEST_PROJECTION_FITTED,
        PLANTED,
        PLANTED_WITH_NOISE,
        REPARAMETRISED,
        REPARAMETRISED_NULL,
        UNTRAINED,
    )
}


def with_nulls_of(theory: Theory | None, references: Mapping[str, Reference]) -> dict[str, Reference]:
    """References as a theory reads them: if it names its nulls, others are context."""
    nulls: tuple[str, ...] | None = getattr(theory, "nulls", None)
    return {
        name: replace(each, role=Role.CONTEXT) if nulls and each.role is Role.NULL and name not in nulls else each
        for name, each in references.items()
    }
