"""Documents of text: files, all those below a folder, or the topics of the reference that comes with Python."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attnaudit.display import readable
from attnaudit.errors import InputError

SUFFIXES = (".txt", ".md", ".raw", ".rst")
#: A corpus to train on is held in memory.
MOST_BYTES = 2**30
_CHUNK = 2**20


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
    decoder, empty = codecs.getincrementaldecoder("utf-8-sig")(), True
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
