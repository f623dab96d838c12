"""The page of a robustness evaluation: tables and curves in one file."""

from __future__ import annotations

import base64
from pathlib import Path

from markupsafe import Markup

from attnaudit._version import __version__
from attnaudit.records.evaluation import EvaluationSummary
from attnaudit.records.files import write_whole
from attnaudit.report.page.templates import part, templates
from attnaudit.report.robustness import (
    accuracy_rows,
    models_of,
    robustness_answers,
    score_lines,
    tables,
    with_short_names,
)

#: The number of models that the heading can name.
_NAMED = 3


def write_robustness_page(summary: EvaluationSummary, title: str, curves: Path | None, path: Path) -> Path:
    """Write the page, whole or not at all.

    Args:
        summary: the results.
        title: a sentence about images and settings.
        curves: an SVG file, embedded as an image, so that no script in it can run.
        path: the output file.
    """
    image = None if curves is None else base64.b64encode(curves.read_bytes()).decode()
    named = with_short_names(summary)
    models = models_of(named)
    text = (
        templates()
        .get_template("robustness.html")
        .render(
            summary=named,
            heading=", ".join(models) if len(models) <= _NAMED else f"{len(models)} models",
            title=title,
            answers=robustness_answers(named),
            models=models,
            tables=tables(named),
            scores=score_lines(named),
            rows=accuracy_rows(summary),
            image=image,
            style=Markup(part("page.css")),
            version=__version__,
        )
    )
    write_whole(path, text.encode("utf-8", "replace"))
    return path
