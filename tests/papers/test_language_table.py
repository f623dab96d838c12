"""Table 4 of the study, from real weights and text."""

import os
from pathlib import Path

import pytest

from attnaudit.audit import AuditSettings, measure, plan_audit
from attnaudit.papers.tables import TABLES, compare
from attnaudit.protocol import Protocol
from attnaudit.sources import parse_model
from attnaudit.sources.inputs import shard_size
from attnaudit.sources.text_documents import TextFiles
from attnaudit.sources.text_shards import text_shards
from attnaudit.sources.texts import study_lines

pytestmark = [pytest.mark.realdata, pytest.mark.long]
DATA = Path(os.environ.get("ATTNAUDIT_DATA", "unset"))


def test_table_4_lands_on_the_published_row_of_minilm(tmp_path):
    """.40 / .57 / .13 / .38, with the 61 of 7,200 heads that the study lost without saying so."""
    lines = study_lines(TextFiles(DATA / "wikitext" / "wiki.test.raw"), 100, 0)
    table = TABLES["table4"]
    settings = AuditSettings(protocol=Protocol.PAPER, measures=table.measures)
    plan = plan_audit([parse_model("minilm")], text_shards(lines, Protocol.PAPER, shard_size()), settings)
    observed = measure(plan, tmp_path).summary.observed("minilm")
    found = {entry.column: (round(entry.ours, 2), entry.rejected) for entry in compare(table, "minilm", observed)}
    assert found == {"MDC": (0.4, 61), "MOC": (0.57, 61), "LCKA": (0.13, 61), "KCKA": (0.38, 61)}
    assert observed["linear_cka"].n == 7139
