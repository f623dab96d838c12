"""What differs between two audits; how it is printed and refused is tested with the command."""

from dataclasses import replace

from attnaudit.audit.difference import ChangedSetting, ChangedVerdict, difference
from attnaudit.records.audit import open_audit
from attnaudit.records.verdict import VerdictWord
from tests.report.synthetic import write_run


def test_settings_and_verdicts_that_changed_are_named_with_both_sides(tmp_path):
    write_run(tmp_path / "a", inputs=3)
    write_run(tmp_path / "b", inputs=3, seed=1)
    first, second = open_audit(tmp_path / "a"), open_audit(tmp_path / "b")
    old, *others = first.verdicts
    word = next(word for word in VerdictWord if word is not old.word)
    changed = replace(second, summary=replace(first.summary, verdicts=(replace(old, word=word), *others)))
    found = difference(first, changed)
    assert found.verdicts == (ChangedVerdict(old.model, old.claim, old.word, word),)
    assert ChangedSetting("seed", "0", "1") in found.settings
