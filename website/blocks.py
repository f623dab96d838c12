"""Fenced blocks of a Markdown page: what it tells a reader to type, and what it says will be printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A stretch of a page: prose if it has no language, else what is between the fences."""

    language: str | None
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Prose and fenced blocks in order; empty prose is left out."""
    end = 0
    for fence in _FENCE.finditer(page):
        if page[end : fence.start()].strip():
            yield Block(None, page[end : fence.start()].strip())
        yield Block(fence["language"], fence["text"])
        end = fence.end()
    if page[end:].strip():
        yield Block(None, page[end:].strip())


def commands(page: str) -> list[str]:
    """The lines that a reader is to type into a shell."""
    return [
        line.removeprefix("$ ")
        for block in blocks(page)
        if block.language == "console"
        for line in block.text.splitlines()
        if line.startswith("$ ")
    ]


def programs(page: str) -> list[tuple[str, str | None]]:
    """Every Python block, with the text block right after it, which shows what it prints."""
    found = list(blocks(page))
    following = [*found[1:], Block(None, "")]
    return [
        (block.text, after.text if after.language == "text" else None)
        for block, after in zip(found, following, strict=True)
        if block.language == "python"
    ]
