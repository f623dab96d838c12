"""Texts that are run as one batch: tokenised, and skipped by name if a model cannot read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from attnaudit.errors import ModelError, UsageError
from attnaudit.numerics.digest import content_digest
from attnaudit.protocol import Protocol
from attnaudit.records.engine import format_size
from attnaudit.sources.inputs import Prepared
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.texts import MOST_CHARACTERS, TextItem

STUDY_TOKENS = 128
PASSAGE_TOKENS = 256
#: A text with more tokens than this that stand for unknown words is not of the kind that a model reads.
_MOST_UNKNOWN = 0.25
#: What tokenising takes (measured), and what is counted for the process anyway.
_BYTES_PER_CHARACTER, _SMALL = 64, 64 * 10**6


@dataclass(frozen=True)
class TextShard:
    """A few texts that are tokenised and run as one batch.

    The study pads all lines to the longest and keeps the padding: `companions` are all lines of the run. If padding
    must not matter, a shard has one text. With `known_only`, texts of another kind than the model reads are skipped.
    """

    items: tuple[TextItem, ...]
    companions: tuple[str, ...] = ()
    known_only: bool = False

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Names and content hashes, which include the companions, as they determine the padding."""
        beside = "\0".join(self.companions)
        return [(item.name, content_digest([f"{item.text}\0{beside}".encode()])) for item in self.items]

    @property
    def groups(self) -> dict[str, str]:
        """The document of each text: texts of one document are not independent."""
        return {item.name: item.document for item in self.items if item.document}

    def prepare(self, model: LoadedModel, protocol: Protocol, room: int | None = None) -> Prepared:
        """The token ids and masks; texts that are too long, or that the model cannot read, are skipped by name.

        Raises:
            UsageError: tokenising takes more than `room` bytes.
        """
        if model.tokenise is None:
            raise ModelError(f"{model.label} does not read text: it has no tokenizer.")
        items = [item for item in self.items if not _too_long(item.text)]
        names = tuple(item.name for item in items)
        skipped = tuple(
            (item.name, f"has more than {MOST_CHARACTERS:,} characters") for item in self.items if _too_long(item.text)
        )
        if not items:
            return Prepared(None, (), skipped)
        texts = [item.text for item in items]
        if protocol is Protocol.EXACT:
            _check_room(texts, room)
            batch = model.tokenise(texts, PASSAGE_TOKENS)
            if self.known_only and (unknown := _unknown_share(batch, model)) > _MOST_UNKNOWN:
                reason = f"has {unknown:.0%} tokens that {model.label} does not know: it reads another kind of text"
                return Prepared(None, (), (*skipped, *((name, reason) for name in names)))
            return Prepared(batch, names, skipped)
        together = [*texts, *(text for text in self.companions if not _too_long(text))]
        _check_room(together, room)
        batch = model.tokenise(together, STUDY_TOKENS)
        kept = {name: value[: len(texts)] for name, value in batch.items() if isinstance(value, Tensor)}
        return Prepared(kept, names, skipped, keep_padding=True)


def text_shards(
    items: Sequence[TextItem], protocol: Protocol, size: int, *, known_only: bool = False
) -> tuple[TextShard, ...]:
    """One text per shard under `exact`, so that nothing is padded; the study's padded batch under `paper`."""
    if protocol is Protocol.EXACT:
        return tuple(TextShard((item,), known_only=known_only) for item in items)
    everything = tuple(item.text for item in items)
    starts = range(0, len(items), size)
    return tuple(TextShard(tuple(items[start : start + size]), everything) for start in starts)


def _too_long(text: str) -> bool:
    return len(text) > MOST_CHARACTERS


def _unknown_share(batch: Mapping[str, Tensor], model: LoadedModel) -> float:
    """The part of the tokens that stands for any word that the model does not know."""
    return 0.0 if model.unknown_token is None else float((batch["input_ids"] == model.unknown_token).float().mean())


def _check_room(texts: Sequence[str], room: int | None) -> None:
    needed = _BYTES_PER_CHARACTER * sum(map(len, texts))
    if room is not None and needed > max(room, _SMALL):
        raise UsageError(
            f"Tokenising {len(texts):,} texts together takes about {format_size(needed)}, but --memory leaves "
            f"{format_size(max(room, 0))}: allow {format_size(needed - room)} more, or use fewer texts or --workers."
        )
