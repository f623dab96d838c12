"""Write all that an atlas has beside its runs: the page, the table and the heads."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from attnaudit._version import __version__
from attnaudit.records.files import write_whole
from attnaudit.report.atlas.audits import AtlasAudit, AtlasFailure, is_baseline, telling_score
from attnaudit.report.atlas.card import TEXT
from attnaudit.report.atlas.head_scores import HEADS, write_heads
from attnaudit.report.atlas.page import TALLIED, AtlasPage, tallied
from attnaudit.report.atlas.table import TABLE, write_table
from attnaudit.report.page import FILE
from attnaudit.report.page.templates import part, templates
from attnaudit.report.progress import duration

INDEX = "index.html"
#: What this page has in common with that of an audit.
_SHARED = ("draw.js", "tables.js")


def write_atlas(audits: Sequence[AtlasAudit], failures: Sequence[AtlasFailure], folder: Path) -> Path:
    """Write `index.html`, `atlas.csv` and `heads.parquet`; the path of the page."""
    write_heads(audits, folder)
    write_table(audits, failures, folder)
    write_whole(folder / INDEX, atlas_page(audits, failures))
    return folder / INDEX


def atlas_page(audits: Sequence[AtlasAudit], failures: Sequence[AtlasFailure]) -> bytes:
    """The page: one file, nothing from elsewhere, and every name escaped."""
    pieces = "\n".join([*map(part, _SHARED), _own("atlas.js")])
    script = f'"use strict";\n(() => {{\n{pieces}\n}})();\n'
    text = (
        templates("attnaudit.report.atlas")
        .get_template("atlas.html")
        .render(
            page=AtlasPage(audits, failures),
            telling_score=telling_score,
            is_baseline=is_baseline,
            tallied=tallied,
            duration=duration,
            kinds=TALLIED,
            version=__version__,
            files={"report": FILE, "card": TEXT, "table": TABLE, "heads": HEADS},
            style=Markup(part("page.css") + _own("atlas.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return text.encode("utf-8", "replace")


def _own(name: str) -> str:
    return files("attnaudit.report.atlas").joinpath("parts", name).read_text(encoding="utf-8")
