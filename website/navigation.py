"""The table of contents: chapters in order, and in each the pages that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Chapter:
    """A folder of pages; those named in `first` lead, the others follow by name, and so do its subfolders."""

    title: str
    folder: str
    first: tuple[str, ...] = ()


CHAPTERS = (
    Chapter("Tutorial", "tutorial", ("install", "first-audit", "own-model", "own-claim")),
    Chapter("How-to", "how-to", ("hub-model", "decoders", "atlas", "imagenet", "look-at-heads", "ci-gate")),
    Chapter(
        "Theory", "theory", ("capture", "verdicts", "invariance", "kernel", "eigenvalue-bound", "implied-eigenvectors")
    ),
    Chapter("Attention variants", "attention"),
    Chapter("Claims", "claims"),
    Chapter("Results", "results", ("verdicts", "vision", "language", "decoders")),
    Chapter("Reports", "report"),
    Chapter("API reference", "api"),
    Chapter("Project", "project"),
)
#: Folders whose name is not their title.
_TITLES = {"sst2": "SST-2"}


def navigation(docs: Path) -> str:
    """A nested list of links to every page below `docs`."""
    lines = ["- [Home](index.md)"]
    for chapter in CHAPTERS:
        lines += [f"- {chapter.title}", *_entries(docs, docs / chapter.folder, chapter.first, "    ")]
    return "\n".join(lines) + "\n"


def _entries(docs: Path, folder: Path, first: tuple[str, ...], indent: str) -> Iterator[str]:
    leading = {"README": -2, "index": -1} | {name: place for place, name in enumerate(first)}
    for page in sorted(folder.glob("*.md"), key=lambda page: (leading.get(page.stem, len(first)), page.stem)):
        yield f"{indent}- [{title(page)}]({page.relative_to(docs)})"
    for inner in sorted(path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.md"))):
        yield f"{indent}- {_TITLES.get(inner.name, inner.name.replace('-', ' ').capitalize())}"
        yield from _entries(docs, inner, (), indent + "    ")


def title(page: Path) -> str:
    """The first heading of a page."""
    heading = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)
    if heading is None:
        raise ValueError(f"{page.name} has no heading of its own: begin it with '# '.")
    return heading[1].replace("`", "")
