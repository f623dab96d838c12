"""The list of references: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from attnaudit.measures.references.base import Reference
from attnaudit.measures.references.gaussian import GAUSSIAN
from attnaudit.measures.references.other_head import OTHER_HEAD
from attnaudit.measures.references.planted import PLANTED
from attnaudit.measures.references.shuffled_tokens import SHUFFLED_TOKENS
from attnaudit.measures.references.untrained import UNTRAINED

REFERENCES: Mapping[str, Reference] = {
    reference.name: reference
    for reference in (
        GAUSSIAN,
        SHUFFLED_TOKENS,
        OTHER_HEAD,
        PLANTED,
        UNTRAINED,
    )
}
