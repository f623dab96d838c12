import random
import re
import tracemalloc

import pytest

from attnaudit.errors import UsageError
from attnaudit.sources.text_documents import TextDocument, TextFiles, standard_text
from attnaudit.sources.texts import MOST_CHARACTERS, PASSAGE_WORDS, TextItem, passages, study_lines


def test_the_studys_filter_keeps_lines_of_more_than_30_characters():
    text = "\n".join(["short", "x" * 30, "y" * 31, "  " + "z" * 31 + "  \r"])
    assert [item.text.strip() for item in study_lines([TextDocument("", [text])], None, 0)] == ["y" * 31, "z" * 31]


def test_lines_are_drawn_as_the_study_draws_them():
    lines = [f"line number {place} with enough characters in it" for place in range(500)]
    drawn = [item.text for item in study_lines([TextDocument("", ["\n".join(lines)])], 100, 0)]
    assert drawn == random.Random(0).sample(lines, 100)


def test_passages_are_long_and_cover_the_text_in_order():
    words = [f"word{place}" for place in range(3 * PASSAGE_WORDS + 20)]
    items = passages([TextDocument("", ["\n".join(words)])], None, 0)
    assert [len(item.text.split()) for item in items] == [PASSAGE_WORDS] * 3
    assert items[1].text.split()[0] == f"word{PASSAGE_WORDS}"


def test_a_short_text_is_one_passage():
    assert passages([TextDocument("", ["just a few words"])], None, 0) == (TextItem("passage-0", "just a few words"),)


def test_python_brings_enough_text_for_a_first_audit():
    assert len(passages(standard_text(), None, 0)) > 100


def test_limits_below_one_are_refused():
    with pytest.raises(UsageError, match=r"--limit .* got 0"):
        passages([TextDocument("", ["text"])], 0, 0)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64, 10**6])
def test_how_a_text_is_cut_into_chunks_makes_no_difference(cut):
    text = "\n".join(f"line {place}: " + "wörd\u3000" * (place % 7) + "end  \r" for place in range(700))
    chunks = [text[start : start + cut] for start in range(0, len(text), cut)]
    assert passages([TextDocument("", chunks)], 3, 1) == passages([TextDocument("", [text])], 3, 1)
    assert study_lines([TextDocument("", chunks)], 9, 1) == study_lines([TextDocument("", [text])], 9, 1)


def test_passages_are_those_of_all_words_drawn_at_random():
    text = " ".join(f"w{place}" for place in range(40 * PASSAGE_WORDS + 7))
    words = re.findall(r"\S+", text)
    cuts = [" ".join(words[start * PASSAGE_WORDS : (start + 1) * PASSAGE_WORDS]) for start in range(40)]
    assert [item.text for item in passages([TextDocument("", [text])], 5, 3)] == random.Random(3).sample(cuts, 5)


@pytest.mark.parametrize("choose", [passages, study_lines])
def test_a_text_without_a_space_takes_no_more_memory_than_a_short_one(tmp_path, choose):
    (tmp_path / "long.txt").write_bytes(b"x" * 30_000_000)
    tracemalloc.start()
    (item,) = choose(TextFiles(tmp_path / "long.txt"), None, 0)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert MOST_CHARACTERS < len(item.text) < 2 * MOST_CHARACTERS


def test_lines_of_several_files_are_grouped_by_file(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("\n".join([name * 40] * 2))
    assert [item.document for item in study_lines(TextFiles(tmp_path), None, 0)] == ["a.txt"] * 2 + ["b.txt"] * 2


def test_topics_of_pythons_reference_are_documents():
    assert len({item.document for item in passages(standard_text(), None, 0)}) > 50
