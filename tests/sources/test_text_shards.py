import pytest

from attnaudit.errors import ModelError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.text_documents import TextFiles
from attnaudit.sources.text_shards import TextShard, text_shards
from attnaudit.sources.texts import MOST_CHARACTERS, PASSAGE_WORDS, TextItem, passages

pytest.importorskip("transformers")


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
