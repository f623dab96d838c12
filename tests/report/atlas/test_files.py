"""The numbers of an atlas as CSV and Parquet, and the card of a model."""

import csv
import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from attnaudit.errors import RunFolderError
from attnaudit.report.atlas import read_card, write_atlas, write_card
from attnaudit.report.atlas.audits import telling_score
from attnaudit.report.atlas.card import card, card_text
from attnaudit.report.atlas.head_scores import SCHEMA
from attnaudit.sources.catalogue import CatalogueEntry
from tests.report.atlas.made_up import audit, audits, failure

COMMAND = "attnaudit audit model --limit 12"


@pytest.fixture
def written(tmp_path):
    own = audits(9)
    write_atlas(own, [failure()], tmp_path)
    return own, tmp_path


def test_every_head_has_a_row_for_every_measure_that_scores_it(written):
    own, folder = written
    table = pq.read_table(folder / "heads.parquet")
    assert table.schema.equals(SCHEMA)
    expected = sum(len(score.heads) for each in own for score in each.scores.values())
    assert table.num_rows == expected
    row = table.to_pylist()[0]
    (theory, measure), score = next(iter(own[0].scores.items()))
    head = score.heads[0]
    assert (row["model"], row["theory"], row["measure"]) == ("model-0", theory, measure)
    assert (row["score"], row["low"], row["high"]) == (head.score.mean, *head.score.interval)
    assert (row["satisfies"], row["above_chance"]) == (head.satisfies, head.above_chance)
    assert {0.0, 1.0} <= set(table["depth"].to_pylist())


def test_an_atlas_without_heads_has_an_empty_table_of_the_same_columns(tmp_path):
    write_atlas([], [failure()], tmp_path)
    assert pq.read_table(tmp_path / "heads.parquet").schema.equals(SCHEMA)
    assert list(csv.DictReader((tmp_path / "atlas.csv").open())) == [
        {"model": "broken", "field": "music", "failure": "It tells no story."}
    ]


def test_the_table_has_a_line_per_model_with_words_and_scores(written):
    own, folder = written
    *lines, failed = csv.DictReader((folder / "atlas.csv").open())
    assert [line["model"] for line in lines] == [each.entry.name for each in own]
    assert (failed["model"], failed["failure"]) == ("broken", "It tells no story.")
    for line, each in zip(lines, own, strict=True):
        for claim in ("kpca-values", "keys-linear"):
            verdict = each.verdicts[claim]
            score = telling_score(verdict)
            assert line[f"{claim}: verdict"] == verdict.words
            assert line[f"{claim}: score"] == ("" if score is None else str(score.score.mean))
            assert line[f"{claim}: measure"] == ("" if score is None else score.measure)
        assert line["theory ksvd: measure"] == each.ranking["ksvd"].least.measure
        assert float(line["theory ksvd: score"]) == each.ranking["ksvd"].mean


def test_a_card_is_read_as_it_was_written(tmp_path):
    write_card(audit(), COMMAND, tmp_path)
    assert read_card(tmp_path) == card(audit(), COMMAND)
    content = json.loads((tmp_path / "card.json").read_text())
    assert content["replay_error"] == 1e-7
    assert content["versions"] == {"torch": "2"}
    assert content["claims"][0]["claim"] == "kpca-values"
    content["heads"] = 7
    (tmp_path / "card.json").write_text(json.dumps(content))
    with pytest.raises(RunFolderError, match="does not match its digest"):
        read_card(tmp_path)


def test_a_card_has_words_numbers_and_the_command_but_no_folder_of_this_machine(tmp_path):
    own = audit()
    text = card_text(card(own, COMMAND))
    for verdict in own.verdicts.values():
        assert f"| `{verdict.claim}`: " in text
        assert f"**{verdict.words}**" in text
    assert str(own.ranking["ksvd"].least.score) in text
    assert COMMAND in text
    assert "a theory may be partial as a claim and at chance here" in text
    assert "/home/ada" not in text
    assert "models/own" in text


def test_no_name_changes_the_markup_of_a_card():
    name = "a|b <i>c</i> *d*\n# e"
    own = audit(name)
    odd = CatalogueEntry(name, "text", "BERT", "MIT", 1, "text", is_here=True)
    text = card_text(card(replace(own, entry=odd), COMMAND))
    assert "a\\|b &lt;i&gt;c&lt;/i&gt; \\*d\\* \\# e" in text
    assert "<i>" not in text
    assert sum(line.startswith("#") for line in text.splitlines()) == 1


def test_heads_are_counted_once_by_whichever_theory_sees_most():
    assert audit(layers=2, heads=3).heads == 6
