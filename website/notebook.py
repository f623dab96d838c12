"""The tutorial as a notebook: `python -m website.notebook` writes it from the pages, which are the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from website.blocks import Block, blocks

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorial"
PAGES = ("first-audit.md", "own-model.md", "own-claim.md")
NOTEBOOK = FOLDER / "tutorial.ipynb"


def notebook() -> str:
    """Prose, code and what it prints, page after page, as the text of a notebook file."""
    cells: list[dict[str, Any]] = []
    for page in PAGES:
        for block in blocks((FOLDER / page).read_text()):
            _append(cells, block)
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": numbered, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _append(cells: list[dict[str, Any]], block: Block) -> None:
    """A cell for a block; text right after code is the output of that code."""
    previous: dict[str, Any] = cells[-1] if cells else {"cell_type": None}
    if block.language == "python":
        source = _lines(block.text.rstrip("\n"))
        cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source})
    elif block.language == "text" and previous["cell_type"] == "code" and not previous["outputs"]:
        previous["outputs"] = [{"name": "stdout", "output_type": "stream", "text": _lines(block.text)}]
    else:
        text = block.text if block.language is None else f"```{block.language}\n{block.text}```"
        cells.append({"cell_type": "markdown", "metadata": {}, "source": _lines(text)})


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook())
