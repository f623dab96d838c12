"""Trained models that need no hub: those that come with attnaudit, and those of the atlas."""

from __future__ import annotations

from dataclasses import dataclass

from attnaudit.sources import atlas_models
from attnaudit.sources.atlas.registry import ATLAS

#: What models are trained on, in the order in which they are shown.
FIELDS = ("text", "decoders", "speech", "music", "vision", "proteins", "chemistry", "microbiomes", "tables")


@dataclass(frozen=True)
class CatalogueEntry:
    """A model by the name that users give.

    Args:
        name: of the model.
        field: what it was trained on, one of `FIELDS`.
        architecture: a few words.
        licence: of the weights.
        megabytes: the size of what is downloaded; None if there is nothing to download.
        reads: `text`, `images`, or a few words.
        is_here: whether it can be audited without a download.
        hub: its id on the Hugging Face hub, if it is known to be there.
    """

    name: str
    field: str
    architecture: str
    licence: str
    megabytes: int | None
    reads: str
    is_here: bool
    hub: str | None = None


def catalogue() -> dict[str, CatalogueEntry]:
    """All of them by name, those of one field together."""
    entries = [
        CatalogueEntry(
            name="minilm",
            field="text",
            architecture="BERT, 6 layers, 12 heads, width 384",
            licence="Apache-2.0",
            megabytes=None,
            reads="text",
            is_here=True,
            hub="sentence-transformers/all-MiniLM-L6-v2",
        ),
        CatalogueEntry(
            name="vit-small-cifar",
            field="vision",
            architecture="ViT, 6 layers, 6 heads, width 192",
            licence="Apache-2.0",
            megabytes=None,
            reads="images",
            is_here=True,
        ),
        *(
            CatalogueEntry(
                name=model.name,
                field=model.field,
                architecture=model.architecture,
                licence=model.licence,
                megabytes=model.megabytes if model.requirements else None,
                reads=model.reads,
                is_here=atlas_models.is_here(model),
                hub=model.hub,
            )
            for model in ATLAS.values()
        ),
    ]
    entries.sort(key=lambda entry: FIELDS.index(entry.field) if entry.field in FIELDS else len(FIELDS))
    return {entry.name: entry for entry in entries}
