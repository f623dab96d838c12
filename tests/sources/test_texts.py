import random
import re
import tracemalloc

import pytest

from attnaudit.errors import InputError, ModelError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.texts import (
    MOST_CHARACTERS,
    PASSAGE_WORDS,
    TextDocument,
    TextFiles,
    TextItem,
    TextShard,
    passages,
    read_text,
    standard_text,
    study_lines,
    text_shards,
)

pytest.importorskip("transformers")


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


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b" \n ", "empty"), (b"\xff\xfe\x00", "not UTF-8"), (b"a\x00b", "binary")],
)
def test_files_without_text_are_refused(tmp_path, content, message):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_text(path)


def test_a_folder_of_text_files_is_read_in_order(tmp_path):
    for name in ("b.txt", "a.md", "c.bin"):
        (tmp_path / name).write_text(name)
    assert read_text(tmp_path) == "a.md\nb.txt"
    with pytest.raises(InputError, match="no text files"):
        read_text((tmp_path / "empty").mkdir() or tmp_path / "empty")


def test_limits_below_one_are_refused():
    with pytest.raises(UsageError, match=r"--limit .* got 0"):
        passages([TextDocument("", ["text"])], 0, 0)


def test_exact_never_pads_and_paper_pads_to_the_longest_line_of_the_run():
    items = [TextItem("short", "one two"), TextItem("long", "one two three four five six seven")]
    model = load_model(parse_model("minilm"))
    exact = [
        shard.prepare(model, Protocol.EXACT).inputs["attention_mask"] for shard in text_shards(items, Protocol.EXACT, 1)
    ]
    assert [tuple(mask.shape) for mask in exact] == [(1, 4), (1, 9)]
    assert all(mask.all() for mask in exact)
    paper = [
        shard.prepare(model, Protocol.PAPER).inputs["attention_mask"] for shard in text_shards(items, Protocol.PAPER, 1)
    ]
    assert [tuple(mask.shape) for mask in paper] == [(1, 9), (1, 9)]
    assert paper[0].sum() == 4


def test_a_line_padded_for_other_company_is_another_input():
    items = [TextItem(f"line-{place}", "text " * (place + 1)) for place in range(3)]
    alone = text_shards(items[:1], Protocol.PAPER, 4)[0]
    together = text_shards(items, Protocol.PAPER, 4)[0]
    assert alone.identity[0] != together.identity[0]


def test_a_model_for_images_does_not_read_text():
    model = load_model(parse_model("test_vit", random_weights=True))
    with pytest.raises(ModelError, match="has no tokenizer"):
        TextShard((TextItem("a", "text"),)).prepare(model, Protocol.EXACT)


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


def test_files_are_read_in_chunks_that_may_split_a_character(tmp_path):
    text = "ä" * 3_000_001 + " end"
    (tmp_path / "book.txt").write_text(text)
    assert read_text(tmp_path / "book.txt") == text
    assert read_text(tmp_path) == text


@pytest.mark.parametrize("choose", [passages, study_lines])
def test_a_text_without_a_space_takes_no_more_memory_than_a_short_one(tmp_path, choose):
    (tmp_path / "long.txt").write_bytes(b"x" * 30_000_000)
    tracemalloc.start()
    (item,) = choose(TextFiles(tmp_path / "long.txt"), None, 0)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert MOST_CHARACTERS < len(item.text) < 2 * MOST_CHARACTERS


@pytest.mark.parametrize("protocol", Protocol)
def test_texts_that_are_too_long_are_skipped_by_name_and_pad_no_others(protocol):
    short, long = TextItem("short", "one two"), TextItem("long", "x" * (MOST_CHARACTERS + 1))
    model = load_model(parse_model("minilm"))
    together = [shard.prepare(model, protocol) for shard in text_shards([short, long], protocol, 4)]
    assert [name for prepared in together for name, _ in prepared.skipped] == ["long"]
    assert [name for prepared in together for name in prepared.names] == ["short"]
    assert together[0].inputs["input_ids"].shape == (1, 4)


def test_texts_that_need_more_room_than_there_is_say_how_much():
    lines = text_shards([TextItem(f"line-{place}", "x" * MOST_CHARACTERS) for place in range(99)], Protocol.PAPER, 4)
    model = load_model(parse_model("minilm"))
    with pytest.raises(UsageError, match=r"132 MB, but --memory leaves 100 MB: allow 32 MB"):
        lines[0].prepare(model, Protocol.PAPER, 100 * 10**6)


def groups_of(items):
    return {name: group for shard in text_shards(items, Protocol.EXACT, 4) for name, group in shard.groups.items()}


def words(name, count):
    return " ".join(f"{name}{place}" for place in range(count))


def test_passages_of_several_files_are_grouped_by_file(tmp_path):
    for name, count in (("a", 2), ("b", 1), ("c", 1)):
        (tmp_path / f"{name}.txt").write_text(words(name, count * PASSAGE_WORDS))
    groups = {"passage-0": "a.txt", "passage-1": "a.txt", "passage-2": "b.txt", "passage-3": "c.txt"}
    assert groups_of(passages(TextFiles(tmp_path), None, 0)) == groups
    drawn = passages(TextFiles(tmp_path), 2, 0)
    assert groups_of(drawn) == {item.name: groups[item.name] for item in drawn}


def test_passages_of_one_file_are_not_grouped(tmp_path):
    """Nobody could tell which of them are independent; that they may not be is said in the documentation."""
    (tmp_path / "a.txt").write_text(words("a", 3 * PASSAGE_WORDS))
    for place in (tmp_path, tmp_path / "a.txt"):
        assert groups_of(passages(TextFiles(place), None, 0)) == {}


def test_a_passage_that_runs_on_belongs_to_the_file_in_which_it_begins(tmp_path):
    (tmp_path / "a.txt").write_text(words("a", PASSAGE_WORDS + 9))
    (tmp_path / "b.txt").write_text(words("b", 2 * PASSAGE_WORDS))
    found = groups_of(passages(TextFiles(tmp_path), None, 0))
    assert found == {"passage-0": "a.txt", "passage-1": "a.txt", "passage-2": "b.txt"}


def test_lines_of_several_files_are_grouped_by_file(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("\n".join([name * 40] * 2))
    assert [item.document for item in study_lines(TextFiles(tmp_path), None, 0)] == ["a.txt"] * 2 + ["b.txt"] * 2


def test_topics_of_pythons_reference_are_documents():
    assert len({item.document for item in passages(standard_text(), None, 0)}) > 50
