"""Texts drawn from documents: the study's short lines, or passages long enough to be informative."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from attnaudit.errors import InputError, UsageError
from attnaudit.sources.text_documents import TextDocument

STUDY_CHARACTERS = 30
#: Words per passage: more than 2d tokens for every common head dimension d, but fewer than encoders accept.
PASSAGE_WORDS = 180
#: Longer lines and passages are skipped: a tokenizer reads all of a text before it cuts it to so many tokens.
MOST_CHARACTERS = 20_000


@dataclass(frozen=True)
class TextItem:
    """One line or passage, its name in the evidence, and the document it is from, if there are several."""

    name: str
    text: str
    document: str = ""


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
