"""Write the page as one file with template, style, script and data, of limited size."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from markupsafe import Markup

from attnaudit.claims.meanings import MEANINGS, RecordKind
from attnaudit.errors import AttnAuditError
from attnaudit.records.audit import AuditRun
from attnaudit.records.files import write_whole
from attnaudit.report.page.document import Document, document
from attnaudit.report.page.numbers import embedded
from attnaudit.report.page.templates import part, templates
from attnaudit.report.verdict_cards import chance_words, finding_meanings, limits_of, sentence, verdict_title
from attnaudit.statistics.decisions import decides

#: The name of the page in a run folder.
FILE = "report.html"
#: The largest size of a page in bytes, so that it fits into an email.
LIMIT = 3_000_000
_SCRIPTS = ("draw.js", "charts.js", "head.js", "heatmap.js", "tables.js", "main.js")
#: How a page that is too large is reduced, step by step: (points per strip, heat maps of which measures).
_LADDER = ((50, "all"), (50, "deciding"), (20, "no"))


def write_page(runs: Sequence[AuditRun], path: Path) -> Path:
    """Write the page of one or several runs, whole or not at all."""
    write_whole(path, page(runs))
    return path


def page(runs: Sequence[AuditRun]) -> bytes:
    """The page of one or several runs."""
    for version in _smaller(document(runs)):
        content = _rendered(version)
        if len(content) < LIMIT:
            return content
    raise AttnAuditError(
        f"A page of {len(runs)} runs would have {len(content) / 1e6:.1f} MB; the limit is 3 MB: give fewer runs."
    )


def _smaller(whole: Document) -> Iterator[Document]:
    yield whole
    smaller = whole.without_views()
    yield smaller
    for points, maps in _LADDER:
        yield smaller.thinned(points, maps)


def _rendered(content: Document) -> bytes:
    script = '"use strict";\n(() => {\n' + "\n".join(part(name) for name in _SCRIPTS) + "\n})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = (
        templates()
        .get_template("page.html")
        .render(
            document=content,
            decides=decides,
            verdict_title=verdict_title,
            sentence=sentence,
            chance_words=chance_words,
            limits_of=limits_of,
            meanings_of=partial(finding_meanings, kind=RecordKind.AUDIT),
            meanings={finding.value: text for finding, text in MEANINGS[RecordKind.AUDIT].items()},
            style=Markup(part("page.css")),
            figure_style=Markup(part("figure.css")),
            script=Markup(script),
            script_hash=digest,
            data=Markup(embedded(content.figures())),
        )
    )
    return text.encode("utf-8", "replace")  # file names may have lone surrogates
