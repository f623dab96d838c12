"""The attention of a network as recipes and cards in run folders have it: what claims read of it is all there."""

from __future__ import annotations

from attnaudit.records.fields import Fields


def check_attention(architecture: Fields) -> None:
    """Fail unless it says which attention stands in which layers.

    Raises:
        RunFolderError: something is missing, or of another kind.
    """
    architecture.text("attention")
    architecture.mapping("attention_options")
    if not architecture.is_null("attention_layers"):
        architecture.wholes("attention_layers")
    if "other_attention" in architecture:
        architecture.text("other_attention")
