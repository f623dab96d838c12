"""Text from files or the standard library: the study's short lines, or passages long enough to be informative."""

from __future__ import annotations

import codecs
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from attnaudit.display import readable
from attnaudit.errors import InputError, ModelError, UsageError
from attnaudit.numerics.digest import content_digest
from attnaudit.protocol import Protocol
from attnaudit.records.engine import format_size
from attnaudit.sources.inputs import Prepared
from attnaudit.sources.model import LoadedModel

SUFFIXES = (".txt", ".md", ".raw", ".rst")
STUDY_CHARACTERS = 30
STUDY_TOKENS = 128
#: Words per passage: more than 2d tokens for every common head dimension d, but fewer than encoders accept.
PASSAGE_WORDS = 180
PASSAGE_TOKENS = 256
#: Longer lines and passages are skipped: a tokenizer reads all of a text before it cuts it to so many tokens.
MOST_CHARACTERS = 20_000
#: A corpus to train on is held in memory.
MOST_BYTES = 2**30
#: A text with more tokens than this that stand for unknown words is not of the kind that a model reads.
_MOST_UNKNOWN = 0.25
#: What tokenising takes (measured), and what is counted for the process anyway.
_BYTES_PER_CHARACTER, _SMALL = 64, 64 * 10**6
_CHUNK = 2**20


@dataclass(frozen=True)
class TextItem:
    """One line or passage, its name in the evidence, and the document it is from, if there are several."""

    name: str
    text: str
    document: str = ""


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


class TextDocument(NamedTuple):
    """A text in chunks, which can be read as often as needed; a name tells it from others, if there are any."""

    name: str
    chunks: Iterable[str]


@dataclass(frozen=True)
class _Chunks:
    """The chunks of a file, read anew every time."""

    file: Path

    def __iter__(self) -> Iterator[str]:
        """The chunks.

        Raises:
            InputError: the file is missing, empty, or not UTF-8 text.
        """
        return _chunks(self.file)


@dataclass(frozen=True)
class TextFiles:
    """The text of a file, or of all text files below a folder, ordered by path: each file is a document."""

    place: Path

    def __iter__(self) -> Iterator[TextDocument]:
        """The documents; a single one needs no name."""
        files = self._files()
        for file in files:
            name = file.relative_to(self.place).as_posix() if len(files) > 1 else ""
            yield TextDocument(readable(name), _Chunks(file))

    def _files(self) -> list[Path]:
        if not self.place.is_dir():
            return [self.place]
        files = sorted(p for p in self.place.rglob("*") if p.is_file() and p.suffix in SUFFIXES)
        if not files:
            raise InputError(f"{self.place} has no text files ({', '.join(SUFFIXES)}).")
        return files


def _chunks(file: Path) -> Iterator[str]:
    decoder, empty = codecs.getincrementaldecoder("utf-8")(), True
    try:
        with file.open("rb") as content:
            while True:
                chunk = content.read(_CHUNK)
                text = decoder.decode(chunk, final=not chunk)
                if "\x00" in text:
                    raise InputError(f"{file} is a binary file, not text.")
                empty = empty and not text.strip()
                if not chunk:
                    break
                yield text
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text.") from error
    if empty:
        raise InputError(f"{file} is empty.")


def read_text(place: Path) -> str:
    """All text of a file or folder.

    Raises:
        InputError: it cannot be read, or is too long to be held in memory.
    """
    found, length = [], 0
    for number, document in enumerate(TextFiles(place)):
        for chunk in (*(["\n"] if number else []), *document.chunks):
            found.append(chunk)
            length += len(chunk.encode())
            if length > MOST_BYTES:
                raise InputError(f"{place} has more than {MOST_BYTES:,} bytes of text: use a part of it.")
    return "".join(found)


def standard_text() -> list[TextDocument]:
    """A text that comes with every Python: the language reference of `pydoc`, a document for each topic."""
    from pydoc_data.topics import topics

    return [TextDocument(name, [topics[name]]) for name in sorted(topics)]


def study_lines(text: Iterable[TextDocument], limit: int | None, seed: int) -> tuple[TextItem, ...]:
    """Lines of more than 30 characters, of which `limit` are drawn by `random.sample` after seeding.

    `text` is read twice, so that only the drawn lines are held.
    """

    def lines() -> Iterator[tuple[str, str]]:
        for name, chunks in text:
            yield from ((line.rstrip("\r"), name) for line in _lines(chunks) if len(line.strip()) > STUDY_CHARACTERS)

    found = _drawn(lines, "line", limit, seed)
    if not found:
        raise InputError(
            f"The text has no line of more than {STUDY_CHARACTERS} characters, which the study's filter requires."
        )
    return found


def whole_lines(text: Iterable[TextDocument], limit: int | None, seed: int) -> tuple[TextItem, ...]:
    """Lines that are not blank, each a text of its own, such as a protein; `limit` are drawn, as of passages."""

    def lines() -> Iterator[tuple[str, str]]:
        for name, chunks in text:
            yield from ((line.strip(), name) for line in _lines(chunks) if line.strip())

    return _drawn(lines, "line", limit, seed)


def passages(text: Iterable[TextDocument], limit: int | None, seed: int) -> tuple[TextItem, ...]:
    """Passages of 180 words, of which `limit` are drawn; a shorter text is one passage. `text` is as for lines.

    A passage that runs on into the next document counts as one of the document in which it begins.
    """

    def cuts() -> Iterator[tuple[str, str]]:
        words = ((word, name) for name, chunks in text for word in _words(chunks))
        cut = list(itertools.islice(words, PASSAGE_WORDS))
        yield _passage(cut)
        while len(cut := list(itertools.islice(words, PASSAGE_WORDS))) == PASSAGE_WORDS:
            yield _passage(cut)

    return _drawn(cuts, "passage", limit, seed)


def _passage(words: Sequence[tuple[str, str]]) -> tuple[str, str]:
    return " ".join(word for word, _ in words), words[0][1] if words else ""


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    """The lines of a text; no more of a line than shows that it is too long."""
    begun = ""
    for chunk in chunks:
        *whole, begun = (begun + chunk).split("\n")
        yield from (line[: MOST_CHARACTERS + 1] for line in whole)
        begun = begun[: MOST_CHARACTERS + 1]
    yield begun


def _words(chunks: Iterable[str]) -> Iterator[str]:
    """The words of a text, split at white space; no more of a word than shows that it is too long."""
    begun = ""
    for chunk in chunks:
        words = [word[: MOST_CHARACTERS + 1] for word in (begun + chunk).split()]
        begun = words.pop() if words and not chunk[-1:].isspace() else ""
        yield from words
    if begun:
        yield begun


def _drawn(
    texts: Callable[[], Iterator[tuple[str, str]]], kind: str, limit: int | None, seed: int
) -> tuple[TextItem, ...]:
    """`limit` of the texts, or all if None: counted first, so that only the drawn ones are held."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be ≥ 1, got {limit}.")
    count = sum(1 for _ in texts())
    places: Sequence[int] = range(count)
    if limit is not None and limit < count:
        places = random.Random(seed).sample(places, limit)
    wanted = set(places)
    found = {
        place: TextItem(f"{kind}-{place}", text[: MOST_CHARACTERS + 1], document)
        for place, (text, document) in enumerate(texts())
        if place in wanted
    }
    if len(found) < len(wanted):
        raise InputError("The text became shorter while it was read: repeat the command.")
    return tuple(found[place] for place in places)


def text_shards(
    items: Sequence[TextItem], protocol: Protocol, size: int, *, known_only: bool = False
) -> tuple[TextShard, ...]:
    """One text per shard under `exact`, so that nothing is padded; the study's padded batch under `paper`."""
    if protocol is Protocol.EXACT:
        return tuple(TextShard((item,), known_only=known_only) for item in items)
    everything = tuple(item.text for item in items)
    starts = range(0, len(items), size)
    return tuple(TextShard(tuple(items[start : start + size]), everything) for start in starts)
