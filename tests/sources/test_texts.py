import random

import pytest

from attnaudit.errors import InputError, ModelError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.texts import (
    PASSAGE_WORDS,
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
    assert [item.text.strip() for item in study_lines([text], None, 0)] == ["y" * 31, "z" * 31]


def test_lines_are_drawn_as_the_study_draws_them():
    lines = [f"line number {place} with enough characters in it" for place in range(500)]
    drawn = [item.text for item in study_lines(["\n".join(lines)], 100, 0)]
    assert drawn == random.Random(0).sample(lines, 100)


def test_passages_are_long_and_cover_the_text_in_order():
    words = [f"word{place}" for place in range(3 * PASSAGE_WORDS + 20)]
    items = passages(["\n".join(words)], None, 0)
    assert [len(item.text.split()) for item in items] == [PASSAGE_WORDS] * 3
    assert items[1].text.split()[0] == f"word{PASSAGE_WORDS}"


def test_a_short_text_is_one_passage():
    assert passages(["just a few words"], None, 0) == (TextItem("passage-0", "just a few words"),)


def test_python_brings_enough_text_for_a_first_audit():
    assert len(passages([standard_text()], None, 0)) > 100


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
        passages(["text"], 0, 0)


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
