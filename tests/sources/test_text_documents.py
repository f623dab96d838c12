import pytest

from attnaudit.errors import InputError
from attnaudit.sources.text_documents import read_text


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


def test_files_are_read_in_chunks_that_may_split_a_character(tmp_path):
    text = "ä" * 3_000_001 + " end"
    (tmp_path / "book.txt").write_text(text)
    assert read_text(tmp_path / "book.txt") == text
    assert read_text(tmp_path) == text
