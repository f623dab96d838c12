"""Text from files or the standard library: the study's short lines, or passages long enough to be informative."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from attnaudit.errors import InputError, ModelError, UsageError
from attnaudit.numerics.digest import content_digest
from attnaudit.protocol import Protocol
from attnaudit.sources.inputs import Prepared
from attnaudit.sources.model import LoadedModel

SUFFIXES = (".txt", ".md", ".raw", ".rst")
STUDY_CHARACTERS = 30
STUDY_TOKENS = 128
#: Words per passage: more than 2d tokens for every common head dimension d, but fewer than encoders accept.
PASSAGE_WORDS = 180
PASSAGE_TOKENS = 256


@dataclass(frozen=True)
class TextItem:
    """One line or passage, and its name in the evidence."""

    name: str
    text: str


@dataclass(frozen=True)
class TextShard:
    """A few texts that are tokenised and run as one batch.

    The study pads all lines to the longest and keeps the padding: `companions` are all lines of the run. If padding
    must not matter, a shard has one text.
    """

    items: tuple[TextItem, ...]
    companions: tuple[str, ...] = ()

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Names and content hashes, which include the companions, as they determine the padding."""
        beside = "\0".join(self.companions)
        return [(item.name, content_digest([f"{item.text}\0{beside}".encode()])) for item in self.items]

    def prepare(self, model: LoadedModel, protocol: Protocol) -> Prepared:
        """The token ids and masks."""
        if model.tokenise is None:
            raise ModelError(f"{model.label} does not read text: it has no tokenizer.")
        texts = [item.text for item in self.items]
        names = tuple(item.name for item in self.items)
        if protocol is Protocol.EXACT:
            return Prepared(model.tokenise(texts, PASSAGE_TOKENS), names)
        batch = model.tokenise([*texts, *self.companions], STUDY_TOKENS)
        return Prepared(
            {name: value[: len(texts)] for name, value in batch.items() if isinstance(value, Tensor)}, names
        )


def read_text(place: Path) -> str:
    """The text of a file, or of all text files below a folder, ordered by path."""
    if place.is_dir():
        files = sorted(p for p in place.rglob("*") if p.is_file() and p.suffix in SUFFIXES)
        if not files:
            raise InputError(f"{place} has no text files ({', '.join(SUFFIXES)}).")
        return "\n".join(read_text(file) for file in files)
    try:
        content = place.read_bytes()
        text = content.decode()
    except OSError as error:
        raise InputError(f"{place} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{place} is not UTF-8 text.") from error
    if "\x00" in text:
        raise InputError(f"{place} is a binary file, not text.")
    if not text.strip():
        raise InputError(f"{place} is empty.")
    return text


def standard_text() -> str:
    """A text that comes with every Python: the language reference of `pydoc`."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def study_lines(text: str, limit: int | None, seed: int) -> tuple[TextItem, ...]:
    """Lines of more than 30 characters, of which `limit` are drawn by `random.sample` after seeding."""
    lines = [line.rstrip("\r") for line in text.split("\n") if len(line.strip()) > STUDY_CHARACTERS]
    if not lines:
        raise InputError(
            f"The text has no line of more than {STUDY_CHARACTERS} characters, which the study's filter requires."
        )
    return _chosen([TextItem(f"line-{place}", line) for place, line in enumerate(lines)], limit, seed)


def passages(text: str, limit: int | None, seed: int) -> tuple[TextItem, ...]:
    """Passages of 180 words, of which `limit` are drawn; a shorter text is one passage."""
    words = re.findall(r"\S+", text)
    count = max(1, len(words) // PASSAGE_WORDS)
    cuts = [" ".join(words[place * PASSAGE_WORDS : (place + 1) * PASSAGE_WORDS]) for place in range(count)]
    return _chosen([TextItem(f"passage-{place}", cut) for place, cut in enumerate(cuts)], limit, seed)


def _chosen(items: Sequence[TextItem], limit: int | None, seed: int) -> tuple[TextItem, ...]:
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be ≥ 1, got {limit}.")
    if limit is None or limit >= len(items):
        return tuple(items)
    return tuple(random.Random(seed).sample(list(items), limit))


def text_shards(items: Sequence[TextItem], protocol: Protocol, size: int) -> tuple[TextShard, ...]:
    """One text per shard under `exact`, so that nothing is padded; the study's padded batch under `paper`."""
    if protocol is Protocol.EXACT:
        return tuple(TextShard((item,)) for item in items)
    everything = tuple(item.text for item in items)
    starts = range(0, len(items), size)
    return tuple(TextShard(tuple(items[start : start + size]), everything) for start in starts)
