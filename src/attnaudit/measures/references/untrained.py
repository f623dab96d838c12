"""The same architecture with random weights."""

from attnaudit.measures.references.base import Reference, Role

UNTRAINED = Reference(
    "untrained",
    "the same architecture with random weights, same inputs",
    Role.CONTEXT,
    random=False,
    network=True,
)
