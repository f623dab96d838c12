"""Text to train on and to test on: which files, and what is held out of one."""

import pytest

from attnaudit.errors import InputError
from attnaudit.sources.corpora import training_and_test_text


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def test_the_end_of_a_single_file_is_held_out(tmp_path):
    lines = [f"line {number}" for number in range(30)]
    write(tmp_path, book_txt="\n\n".join(lines))
    train, test = training_and_test_text(tmp_path / "book.txt")
    assert train.text.split("\n") == lines[:27]
    assert test.text.split("\n") == lines[27:]


@pytest.mark.parametrize(
    ("files", "trained", "tested"),
    [
        ({"train1_txt": "a b", "train2_txt": "c", "test_txt": "d"}, "a b c", "d"),
        ({"train_txt": "a", "test_txt": "b", "wiki_test_raw": "c", "valid_txt": "d"}, "a", "b"),
        ({"wiki_train_tokens": "a", "wiki_test_tokens": "b", "wiki_valid_tokens": "c"}, "a", "b"),
        ({"wiki_test_raw": "a", "valid_txt": "b"}, "a", "b"),
    ],
)
def test_a_folder_has_both_halves(tmp_path, files, trained, tested):
    write(tmp_path, **files)
    train, test = training_and_test_text(tmp_path)
    assert train.text.split() == trained.split()
    assert test.text.split() == tested.split()


def test_only_the_first_lines_with_words_are_taken(tmp_path):
    write(tmp_path, train_txt="\n\na b\n\nc d\n", test_txt="e\nf")
    train, test = training_and_test_text(tmp_path)
    assert (train.first(1).text, test.first(1).text, train.first(None)) == ("a b", "e", train)
    assert len(train.first(1)) == 3  # the end of the line counts


def test_the_fingerprint_is_that_of_the_text(tmp_path):
    write(tmp_path, train_txt="a b", test_txt="a b")
    train, test = training_and_test_text(tmp_path)
    assert train.fingerprint == test.fingerprint
    write(tmp_path, train_txt="a c")
    assert training_and_test_text(tmp_path)[0].fingerprint != test.fingerprint


@pytest.mark.parametrize(
    ("files", "place", "sentence"),
    [
        ({"train_txt": "a"}, "", "train*.txt and test*.txt"),
        ({"train_txt": "a", "test_txt": " \n"}, "", "test.txt is empty"),
        ({"book_txt": "one line only"}, "book.txt", "book.txt has only one line"),
        ({}, "gone.txt", "gone.txt cannot be read (No such file"),
    ],
)
def test_what_is_no_text_to_learn_from_is_said_in_a_sentence(tmp_path, files, place, sentence):
    write(tmp_path, **files)
    with pytest.raises(InputError) as error:
        training_and_test_text(tmp_path / place)
    assert sentence in str(error.value)
