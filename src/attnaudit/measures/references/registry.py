"""The list of references: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from attnaudit.measures.references.base import Reference
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

REFERENCES: Mapping[str, Reference] = {
    reference.name: reference
    for reference in (
        RANDOM_PROJECTION,
        ROTATED,
        RANDOM_KEYS,
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
