"""The same architecture with random weights."""

from attnaudit.measures.references.base import Reference, Role

UNTRAINED = Reference(
    "untrained",
    "the same architecture with random weights, on two of the inputs at most",
    Role.CONTEXT,
    random=False,
    network=True,
)
